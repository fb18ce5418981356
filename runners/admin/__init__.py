"""Admin pages of targets, of the snapshots of project workspaces, and of paired browsers."""

from runners.admin import paired_browsers, target_admin

__all__ = ["paired_browsers", "target_admin"]
