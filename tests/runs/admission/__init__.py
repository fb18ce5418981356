"""Tests of `runs/admission/`."""
