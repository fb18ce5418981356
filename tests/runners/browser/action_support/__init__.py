"""Tests of `runners/browser/action_support/`."""
