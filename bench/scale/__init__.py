"""`make bench-scale`: millions of memories in thousands of tenants, and what each verb costs among them."""
