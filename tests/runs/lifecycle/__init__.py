"""Tests of `runs/lifecycle/`."""
