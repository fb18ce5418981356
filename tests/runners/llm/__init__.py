"""Tests of `runners/llm/`."""
