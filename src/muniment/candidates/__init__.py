"""Stage 2: captures become typed candidates; each passes the gates and enters the queue, or is refused."""
