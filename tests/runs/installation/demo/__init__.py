"""Tests of `runs/installation/demo/`."""
