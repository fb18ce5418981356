"""Tests of `runs/agent/`."""
