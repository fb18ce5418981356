"""Tests of `runs/worker/`."""
