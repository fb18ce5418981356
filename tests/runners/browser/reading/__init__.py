"""Tests of `runners/browser/reading/`."""
