"""Tests of `runs/installation/supervision/`."""
