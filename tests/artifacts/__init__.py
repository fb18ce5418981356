"""Tests of `artifacts/`."""
