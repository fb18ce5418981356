"""Tests of `runners/browser/input/`."""
