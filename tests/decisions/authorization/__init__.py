"""Tests of `decisions/authorization/`."""
