"""Tests of `decisions/security/`."""
