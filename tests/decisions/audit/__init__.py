"""Tests of `decisions/audit/`."""
