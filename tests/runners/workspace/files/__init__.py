"""Tests of `runners/workspace/files/`."""
