"""Tests of `runs/calls/`."""
