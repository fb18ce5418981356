"""Tests of `runners/workspace/preview/`."""
