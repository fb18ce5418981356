"""Tests of `decisions/identity/`."""
