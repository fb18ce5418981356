"""Tests of `runs/live/`."""
