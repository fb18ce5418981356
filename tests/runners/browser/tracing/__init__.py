"""Tests of `runners/browser/tracing/`."""
