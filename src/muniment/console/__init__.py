"""The console: pages for operators, privacy officers and auditors, made on the server, with a little script beside."""
