"""Hints in the language of the workspace: Chinese unless its owner chose English (S4 §7)."""

from __future__ import annotations

from runners.workspace.workspace import Workspace


def hint(workspace: Workspace, *, zh: str, en: str) -> str:
    """Return the hint that the workspace's owner reads."""
    return en if workspace.policy.language == "EN" else zh
