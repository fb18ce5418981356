"""Read-only queries: runs, visibility, totals, evidence and the content of pages that runs read."""
