"""Stage 4: approved proposals become promoted memory; memory is indexed, expires and is retracted here."""
