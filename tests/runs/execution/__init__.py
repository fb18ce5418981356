"""Tests of `runs/execution/`."""
