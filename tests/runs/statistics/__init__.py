"""Tests of `runs/statistics/`."""
