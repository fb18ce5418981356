"""Tests of `runners/browser/files/`."""
