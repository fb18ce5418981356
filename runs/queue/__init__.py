"""The queue of runs: which run is next, leases (claim, heartbeat, release, expiry) with the slots
and named sessions they hold, shared steps, and workers' wake-ups. Steps are in `runs.journal`.
"""
