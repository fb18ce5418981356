"""Health of an installation: the status behind /readyz and /metrics, and doctor's checks."""
