"""Tests of `decisions/foundation/validation/`."""
