"""What keeps the fabric healthy: one file for each job, and the worker that runs them where work waits."""
