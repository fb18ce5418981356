"""Tests of `runs/operations/health/`."""
