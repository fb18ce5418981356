"""Tests of `runs/events/`."""
