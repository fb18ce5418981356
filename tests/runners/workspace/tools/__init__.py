"""Tests of `runners/workspace/tools/`."""
