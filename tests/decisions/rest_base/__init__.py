"""Tests of `decisions/rest_base/`."""
