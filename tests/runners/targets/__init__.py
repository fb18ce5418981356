"""Tests of `runners/targets/`."""
