"""The event log: hash-chained batches, row digests, verification, and the provenance of a memory."""
