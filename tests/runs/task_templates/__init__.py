"""Tests of `runs/task_templates/`."""
