"""The worker: which jobs are due in which tenant, and running them."""
