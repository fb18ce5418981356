"""Tests of `runs/admin/`."""
