"""A thousand readers of event streams on one web process."""
