"""Fixtures and helpers for the tests of runs."""
