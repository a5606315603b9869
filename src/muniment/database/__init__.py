"""PostgreSQL: the embedded server, sessions by task, sealing, migrations, and all SQL."""
