"""Tests of `runs/operations/supervision/`."""
