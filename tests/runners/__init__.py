"""Tests of `runners/`."""
