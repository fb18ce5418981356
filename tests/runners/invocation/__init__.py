"""Tests of `runners/invocation/`."""
