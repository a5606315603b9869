"""Notices: alerts and summaries for people, by mail, in a chat and in the browser."""
