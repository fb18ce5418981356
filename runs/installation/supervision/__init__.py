"""The supervisor of the embedded stack: its services, their liveness, logs and shutdown."""
