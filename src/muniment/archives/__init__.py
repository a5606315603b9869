"""Archive files: captures that left the database, compressed, in a folder; what they say is still sealed."""
