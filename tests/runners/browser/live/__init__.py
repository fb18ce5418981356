"""Tests of `runners/browser/live/`."""
