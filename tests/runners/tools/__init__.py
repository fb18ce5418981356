"""Tests of `runners/tools/`."""
