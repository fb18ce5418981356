"""Tests of `runners/network/`."""
