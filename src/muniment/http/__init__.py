"""The HTTP interface: `/v1`, credentials, limits, problems, and the server."""
