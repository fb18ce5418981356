"""Tests of `decisions/models/`."""
