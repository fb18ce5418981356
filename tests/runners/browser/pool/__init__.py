"""Tests of `runners/browser/pool/`."""
