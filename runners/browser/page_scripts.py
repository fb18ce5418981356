"""The JavaScript that runs in pages, from `page/*.js`, put together once per process.

`activity.js` runs in the page's own world before its scripts; everything else runs in an isolated
world, which a page's changes to built-ins, and its Content-Security-Policy, do not reach.
"""

from __future__ import annotations

import re
import secrets
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "page"
READER = (
    "dom",
    "secrets",
    "elements",
    "inline",
    "sections",
    "content",
    "classify",
    "settle",
    "read",
)
READ, ARRIVED, ACT = "continuityRead", "continuityArrived", "continuityAct"
COVER = ("dom", "secrets", "cover")
SHOWING = (*COVER, "showing")
ACTOR = (
    "dom",
    "secrets",
    "elements",
    "settle",
    "words",
    "paths",
    "locate",
    "aim",
    "index",
    "markup",
    "stand_in",
    "enter",
)
_HUMP = re.compile(r"([a-z0-9])([A-Z])")
_SEPARATORS = re.compile(r"[\s_\-.:\[\]/]+")
# Names the events between both worlds, so that a page cannot listen for them.
TOKEN = f"continuity:{secrets.token_hex(8)}:"


@cache
def activity_script() -> str:
    """Return what counts a page's requests and timers while it loads."""
    return _source("activity")


@cache
def reader_script() -> str:
    """Return the function `(options) => promise` of the reading of a document as JSON text."""
    return _function(READER, "read")


def laid_out_early() -> str:
    """Return what lays out, in each new document, what is asked of nearly all of them, so that it
    is not sent for each.
    """
    scripts = {READ: reader_script(), ARRIVED: arrived_script()}
    laid = "".join(f"globalThis.{name} = {script};" for name, script in scripts.items())
    return f"if (window === window.top) {{ {laid} }}"


@cache
def cover_script() -> str:
    """Return the function `(covered) => promise` that covers secret fields, or uncovers them."""
    return _function(COVER, "cover")


@cache
def showing_script() -> str:
    """Return the function `(emptied) => promise` that empties some of the fields that it told
    before, by number, and tells {fields[], texts[]}: what each field and each root shows.
    """
    return _function(SHOWING, "showing")


@cache
def arrived_script() -> str:
    """Return the function `({wholly}) => promise` that waits until a document is there."""
    return _function(("arrived",), "arrived")


@cache
def actor_script() -> str:
    """Return the function `({deed, given}) => promise` that finds elements and makes them ready."""
    return _function(ACTOR, "handle")


@cache
def actor_at_hand() -> str:
    """Return the function that lays the actor out in a document, for all that is done there."""
    return f"() => {{ globalThis.{ACT} = {actor_script()}; }}"


def is_missing(told: str) -> bool:
    """Tell whether an exception says that the document was made without what was called there."""
    return told.endswith(tuple(f"{name} is not defined" for name in (READ, ARRIVED, ACT)))


def looks_secret(name: str) -> bool:
    """Tell whether a field of this name holds a secret, by the rule of `page/secrets.js`."""
    words = _SEPARATORS.sub(" ", _HUMP.sub(r"\1 \2", name))
    return bool(_secret_names().search(words))


@cache
def _secret_names() -> re.Pattern[str]:
    rules = re.findall(r"^const SECRET_\w+ = /(.+)/i;$", _source("secrets"), re.MULTILINE)
    return re.compile("|".join(rules), re.IGNORECASE)


def _function(names: tuple[str, ...], name: str) -> str:
    """Put files together to a function; its text never changes, so browsers compile it once."""
    sources = "\n".join(_source(source) for source in names)
    return f'async (given) => {{\n"use strict";\n{sources}\nreturn {name}(given);\n}}'


def _source(name: str) -> str:
    """Return a file without comment lines and indentation: every page is sent it."""
    lines = (FOLDER / f"{name}.js").read_text(encoding="utf-8").splitlines()
    kept = (line.strip() for line in lines)
    return "\n".join(line for line in kept if line and not line.startswith("//")).replace(
        "__TOKEN__", TOKEN
    )


class ReaderMissing(Exception):
    """What was called is not laid out in the document."""


def first_line(details: dict[str, Any]) -> str:
    """Return what an exception of a page script says, without its stack."""
    text = details.get("exception", {}).get("description") or details.get("text") or ""
    return str(text).partition("\n")[0]
