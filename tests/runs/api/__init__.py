"""Tests of `runs/api/`."""
