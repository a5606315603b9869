"""The built-in detectors: each takes a normalised text and returns the spans of one kind of personal data."""
