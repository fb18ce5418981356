"""Admin pages of artifacts: the list, one artifact with its preview, and its download."""

from artifacts.admin import artifact_admin

__all__ = ["artifact_admin"]
