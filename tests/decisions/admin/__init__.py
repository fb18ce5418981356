"""Tests of `decisions/admin/`."""
