"""What the stages rest on: the consent ledger, the pack registry, the trail and the event log."""
