"""The hands in the admin site: the targets that tools run on, and the snapshots of those that are
folders. Putting a snapshot back is the only deed.
"""

from runners.admin import target_admin

__all__ = ["target_admin"]
