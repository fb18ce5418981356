"""Tests of `runs/installation/`."""
