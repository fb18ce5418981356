"""Tests of `runs/installation/health/`."""
