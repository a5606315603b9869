"""A database that is divided by tenant over the nodes of a Citus cluster."""
