"""Tests of `decisions/validation/`."""
