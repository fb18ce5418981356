"""Tests of README and docs: their samples run, their commands exist, their pages render."""
