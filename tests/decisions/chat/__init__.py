"""Tests of `decisions/chat/`."""
