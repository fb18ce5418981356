"""Tests of `runners/browser/tools/`."""
