"""What an operator runs: home, processes, health checks, backups, web server and the demo."""
