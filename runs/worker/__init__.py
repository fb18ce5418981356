"""The worker process: it claims runs, keeps their leases, and shares the steps of large runs."""
