"""Tests of `runners/api/`."""
