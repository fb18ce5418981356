"""The product as it names itself at its doors."""

from __future__ import annotations

NAME = "continuity"
VERSION = "0.1.0"  # as in pyproject.toml
