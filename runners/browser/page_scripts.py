"""The JavaScript that runs in pages, from `page/*.js`, put together once per process.

`activity.js` runs in the page's own world before its scripts; everything else runs in an isolated
world, which a page's changes to built-ins, and its Content-Security-Policy, do not reach.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "page"
READER = (
    "dom", "secrets", "elements", "inline", "sections", "content", "classify", "settle", "read",
)  # fmt: skip
COVER = ("dom", "secrets", "cover")
# Names the events between both worlds, so that a page cannot listen for them.
TOKEN = f"continuity:{secrets.token_hex(8)}:"


@cache
def activity_script() -> str:
    """Return what counts a page's requests and timers while it loads."""
    return _source("activity")


def reader_call(options: Mapping[str, Any]) -> str:
    """Return an expression whose promise is the reading of the document as JSON text."""
    return _call(READER, "read", options)


def cover_call(*, covered: bool) -> str:
    """Return an expression that covers the values of secret fields, or uncovers them."""
    return _call(COVER, "cover", covered)


def _call(names: tuple[str, ...], function: str, argument: object) -> str:
    return f"(async () => {{\n{_joined(names)}\nreturn {function}({json.dumps(argument)});\n}})()"


@cache
def _joined(names: tuple[str, ...]) -> str:
    return "\n".join(['"use strict";', *(_source(name) for name in names)])


def _source(name: str) -> str:
    """Return a file without comment lines and indentation: every page is sent it."""
    lines = (FOLDER / f"{name}.js").read_text(encoding="utf-8").splitlines()
    kept = (line.strip() for line in lines)
    return "\n".join(line for line in kept if line and not line.startswith("//")).replace(
        "__TOKEN__", TOKEN
    )
