"""Tests of `runners/workspace/writing/`."""
