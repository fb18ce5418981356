"""Tests of `runners/workspace/scripts/`."""
