"""The supervisor of the embedded stack: its services, their health, logs, restarts and stop."""
