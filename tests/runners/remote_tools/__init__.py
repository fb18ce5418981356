"""Tests of `runners/remote_tools/`."""
