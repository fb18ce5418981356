"""Health of an installation: the numbers behind /readyz and /metrics, and doctor's checks."""
