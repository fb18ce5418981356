"""Tests of `runners/plugin/`."""
