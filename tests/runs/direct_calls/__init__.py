"""Tests of `runs/direct_calls/`."""
