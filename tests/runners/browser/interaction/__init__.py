"""Tests of `runners/browser/interaction/`."""
