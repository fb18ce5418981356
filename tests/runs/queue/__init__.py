"""Tests of `runs/queue/`."""
