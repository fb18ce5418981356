"""The step journal: a worker's writes about the steps of a run, and the run's end."""
