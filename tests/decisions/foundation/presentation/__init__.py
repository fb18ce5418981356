"""Tests of `decisions/foundation/presentation/`."""
