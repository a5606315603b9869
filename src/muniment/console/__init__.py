"""The web console for reviewers, privacy officers, auditors and admins: server-rendered pages with a little script."""
