"""Tests of `runners/browser/actions/`."""
