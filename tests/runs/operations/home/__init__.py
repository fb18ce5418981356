"""Tests of `runs/operations/home/`."""
