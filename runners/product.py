"""The name and version of the product, as its servers report them."""

from __future__ import annotations

NAME = "continuity"
VERSION = "0.1.0"  # pyproject.toml reads it
