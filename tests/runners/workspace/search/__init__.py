"""Tests of `runners/workspace/search/`."""
