"""Tests of `runs/operations/`."""
