"""Tests of `runs/operations/demo/`."""
