"""Tests of `runs/queries/`."""
