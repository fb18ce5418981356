"""Fixtures and helpers for the tests of browser."""
