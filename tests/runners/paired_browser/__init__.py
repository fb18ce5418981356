"""Tests of `runners/paired_browser/`."""
