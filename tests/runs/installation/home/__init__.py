"""Tests of `runs/installation/home/`."""
