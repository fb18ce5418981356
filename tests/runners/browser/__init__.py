"""Tests of `runners/browser/`."""
