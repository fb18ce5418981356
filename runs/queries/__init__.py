"""Read-only queries: runs and their events, totals, evidence, and parts of stored results."""
