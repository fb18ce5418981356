"""The queue of runs: dispatch order, eligibility, leases, the outbox and wake-ups of workers."""
