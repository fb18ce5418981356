"""Tests of `decisions/`."""
