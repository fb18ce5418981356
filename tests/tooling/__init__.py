"""Tests of the test tooling itself."""
