"""Tests of `runs/scheduler/`."""
