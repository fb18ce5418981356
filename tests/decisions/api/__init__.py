"""Tests of `decisions/api/`."""
