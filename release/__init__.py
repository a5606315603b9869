"""Makes a release: packages, tried in clean environments, their notes and the SBOM. It never uploads anything."""
