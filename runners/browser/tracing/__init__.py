"""Playwright traces of failed steps: recorded, sanitized and stored as artifacts."""
