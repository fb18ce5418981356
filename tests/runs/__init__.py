"""Tests of `runs/`."""
