"""Artifacts in the admin site: what a run kept, to look at and to take away."""

from artifacts.admin import artifact_admin

__all__ = ["pages"]
