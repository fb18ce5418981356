"""Tests of `runners/browser/session/`."""
