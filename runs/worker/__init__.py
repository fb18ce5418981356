"""The worker process: it receives wake-ups, claims runs and executes them on its threads."""
