"""The folder that this machine's own callers work in, as this process was told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """What a command line said.

    Attributes:
        root: None: there is none; `why` says so.
        is_named: the person named it; it comes before any default then.
        developer: its person chose developer mode.
    """

    root: Path | None
    is_named: bool = False
    developer: bool = False
    why: str = ""


_of_this_process: LocalFolder | None = None


def use_local_folder(folder: LocalFolder | None) -> None:
    """Say which folder this process's local callers work in; None: what the settings say."""
    global _of_this_process
    _of_this_process = folder


def local_folder() -> LocalFolder:
    """Return the folder that this process's local callers work in where nothing else is meant."""
    if _of_this_process is not None:
        return _of_this_process
    return LocalFolder(settings.WORKSPACE, why="CONTINUITY_WORKSPACE names no folder.")


def is_folder(path: Path) -> bool:
    """Tell whether a folder is there that can be looked at; whatever the reason is if not: a name
    that is too long, a link to itself, a folder above that is closed.
    """
    try:
        return path.is_dir()
    except OSError:
        return False
