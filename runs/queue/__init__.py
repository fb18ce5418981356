"""The queue of runs: dispatch order, eligibility, leases, workers' wake-ups."""
