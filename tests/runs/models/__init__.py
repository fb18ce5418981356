"""Tests of `runs/models/`."""
