"""Tests of `runs/installation/web/`."""
