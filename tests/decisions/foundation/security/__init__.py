"""Tests of `decisions/foundation/security/`."""
