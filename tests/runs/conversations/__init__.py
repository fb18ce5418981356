"""Tests of `runs/conversations/`."""
