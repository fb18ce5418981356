"""The workspace folder of local callers that this process was started with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """The folder that a command line names.

    Attributes:
        root: the folder; None: there is none, and `why` is the reason.
        is_named: the user named it explicitly, so it takes precedence over default targets.
        developer: developer mode is on.
    """

    root: Path | None
    is_named: bool = False
    developer: bool = False
    why: str = ""


_of_this_process: LocalFolder | None = None


def set_local_folder(folder: LocalFolder | None) -> None:
    """Set the folder of this process's local callers; None: use the settings."""
    global _of_this_process
    _of_this_process = folder


def local_folder() -> LocalFolder:
    """Return the folder of this process's local callers that name no target."""
    if _of_this_process is not None:
        return _of_this_process
    return LocalFolder(settings.WORKSPACE, why="CONTINUITY_WORKSPACE names no folder.")


def is_folder(path: Path) -> bool:
    """Return whether the path is an accessible folder; any OSError counts as no."""
    try:
        return path.is_dir()
    except OSError:
        return False
