"""Tests of `runs/webhooks/`."""
