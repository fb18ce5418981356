"""Tests of `runs/operations/web/`."""
