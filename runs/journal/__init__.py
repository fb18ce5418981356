"""The step journal: read at a claim, written by the worker under its lease; the run's end."""
