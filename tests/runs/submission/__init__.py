"""Tests of `runs/submission/`."""
