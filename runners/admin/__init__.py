"""Admin pages of targets and of the snapshots of project workspaces."""

from runners.admin import target_admin

__all__ = ["target_admin"]
