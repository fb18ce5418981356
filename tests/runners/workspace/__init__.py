"""Tests of `runners/workspace/`."""
