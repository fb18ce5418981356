"""Tests of `artifacts/api/`."""
