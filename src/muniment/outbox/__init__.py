"""The outbox: events as CloudEvents, signed, sent to addresses that may be sent to."""
