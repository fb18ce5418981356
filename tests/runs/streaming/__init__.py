"""Tests of `runs/streaming/`."""
