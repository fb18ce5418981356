"""Tests of `runners/docker_runner/`."""
