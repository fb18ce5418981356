"""Tests of `artifacts/admin/`."""
