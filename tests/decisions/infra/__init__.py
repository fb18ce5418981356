"""Tests of `decisions/infra/`."""
