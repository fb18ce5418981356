"""Tests of `decisions/foundation/infra/`."""
