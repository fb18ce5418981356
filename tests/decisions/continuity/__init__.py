"""Tests of `decisions/continuity/`."""
