"""Tests of `decisions/memory/`."""
