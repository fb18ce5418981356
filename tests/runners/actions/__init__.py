"""Tests of `runners/actions/`."""
