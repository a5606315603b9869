"""What the memory of a tenant does and how well, counted over a window; alerts, and the scan for personal data."""
