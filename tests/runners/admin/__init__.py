"""Tests of `runners/admin/`."""
