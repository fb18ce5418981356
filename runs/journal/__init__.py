"""The step journal: a worker's writes about the steps of a run, the run's end, and lost workers."""
