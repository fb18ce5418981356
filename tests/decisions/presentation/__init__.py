"""Tests of `decisions/presentation/`."""
