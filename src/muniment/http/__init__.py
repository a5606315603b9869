"""The HTTP door: `/v1`, its credentials, its limits, its problems, and the server that holds it open."""
