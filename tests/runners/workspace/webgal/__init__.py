"""Tests of `runners/workspace/webgal/`."""
