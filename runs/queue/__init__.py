"""The queue of runs: dispatch order, eligibility, leases, the outbox and workers' wake-ups."""
