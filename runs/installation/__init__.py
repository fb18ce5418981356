"""One installation: its home folder, processes, health checks, backups and the demo run."""
