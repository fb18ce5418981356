"""Tests of `artifacts/storage/`."""
