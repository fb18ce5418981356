"""The worker process: claiming runs, its heartbeat, and sharing the steps of large runs."""
