"""Tests of `runs/sessions/`."""
