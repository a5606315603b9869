"""Notices: alerts and digests for people, by mail, in a chat and in the browser."""
