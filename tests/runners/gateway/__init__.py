"""Tests of `runners/gateway/`."""
