"""The state machine of a run: allowed statuses, the guarded transition, and the rows it writes."""
