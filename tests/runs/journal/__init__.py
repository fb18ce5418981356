"""Tests of `runs/journal/`."""
