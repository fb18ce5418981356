"""The JavaScript that runs in pages: assembles the files of `page/*.js`, once per process.

`activity.js` runs in the page's own world before the page's scripts. Everything else runs in an
isolated world, which the page's changes to built-ins and its Content-Security-Policy do not affect.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
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
# Names under which the functions are installed in the global object of the isolated world.
READ, DOCUMENT_READY, ACT = "continuityRead", "continuityDocumentReady", "continuityAct"
COVERED = "continuityCover"  # in the browser extension
COVER = ("dom", "secrets", "cover")
VISIBLE_TEXT = (*COVER, "visible_text")
ACTIONS = (
    "dom",
    "secrets",
    "elements",
    "settle",
    "text_matching",
    "xpath",
    "locate",
    "target",
    "click_ids",
    "scroll",
    "find_text",
    "numbers",
    "element_lines",
    "outline",
    "observe",
    "markup",
    "synthetic_input",
    "changes",
    "drag",
    "forms",
    "basis",
    "commands",
)
_HUMP = re.compile(r"([a-z0-9])([A-Z])")
_SEPARATORS = re.compile(r"[\s_\-.:\[\]/]+")
# Prefix of the events between the two worlds; it is random, so that a page cannot listen for them.
TOKEN = f"continuity:{secrets.token_hex(8)}:"
# Of the events that let input reach frames of other origins while a person has the page.
PERSON_TOKEN = f"continuity:{secrets.token_hex(8)}:"
STORED_PREFIX = "${globalThis.continuityToken}"  # in the browser extension


@cache
def activity_script() -> str:
    """Return the script that counts a page's requests and timers while it loads."""
    return _with_token(_source("activity"), TOKEN)


@cache
def frame_input_script() -> str:
    """Return the script that withholds input from frames of other origins than their page's."""
    return _with_token(_block("foreign_frame", "frame_input"), PERSON_TOKEN)


@cache
def reader_script() -> str:
    """Return the function `(options) => promise` that reads a document and returns JSON text."""
    return _function(READER, "read")


def install_at_document_start() -> str:
    """Return the script that the browser runs in each new document, in the isolated world.

    It installs the first listeners of input, and the functions that almost every document is called
    with, so that they are not sent with each call.
    """
    scripts = {READ: reader_script(), DOCUMENT_READY: document_ready_script()}
    installed = "".join(f"globalThis.{name} = {script};" for name, script in scripts.items())
    return f"{_source('first_listeners')} if (window === window.top) {{ {installed} }}"


@cache
def cover_script() -> str:
    """Return the function `(covered) => promise` that covers or uncovers secret fields."""
    return _function(COVER, "cover")


@cache
def visible_text_script() -> str:
    """Return the function `(emptied) => promise` that lists what fields and roots show.

    It first empties the fields at the indexes `emptied` of its previous answer, then returns
    {fields[], texts[]}.
    """
    return _function(VISIBLE_TEXT, "visibleText")


@cache
def document_ready_script() -> str:
    """Return the function `({wholly}) => promise` that waits until a document has loaded."""
    return _function(("document_ready",), "documentReady")


@cache
def action_script() -> str:
    """Return the function `({command, args}) => promise` that runs a command of commands.js."""
    return _function(ACTIONS, "runCommand")


@cache
def install_action_script() -> str:
    """Return the function that installs the action script in a document, for later calls there."""
    return f"() => {{ globalThis.{ACT} = {action_script()}; }}"


def extension_scripts() -> Mapping[str, str]:
    """Return the scripts for the browser extension, by file name; most install one function.

    The extension stores the events' prefix in each document, and replaces `__TOKEN__` in
    `activity.js`.
    """
    functions = {
        "act.js": (ACT, ACTIONS, "runCommand"),
        "read.js": (READ, READER, "read"),
        "document_ready.js": (DOCUMENT_READY, ("document_ready",), "documentReady"),
        "cover.js": (COVERED, COVER, "cover"),
    }
    scripts = {
        file: f"globalThis.{installed} = {_function(names, name, token=STORED_PREFIX)};\n"
        for file, (installed, names, name) in functions.items()
    }
    alone = {
        "activity.js": _source("activity"),
        "first_listeners.js": _source("first_listeners"),
        "frame_input.js": _block("foreign_frame", "frame_input_of_extension"),
    }
    return {**{file: f"{text}\n" for file, text in alone.items()}, **scripts}


def is_not_installed(message: str) -> bool:
    """Return whether an exception means that the called function is not in the document."""
    names = (READ, DOCUMENT_READY, ACT)
    return message.endswith(tuple(f"{name} is not defined" for name in names))


def looks_secret(name: str) -> bool:
    """Return whether a field of this name holds a secret, by the rule of `page/secrets.js`."""
    words = _SEPARATORS.sub(" ", _HUMP.sub(r"\1 \2", name))
    return bool(_secret_names().search(words))


@cache
def _secret_names() -> re.Pattern[str]:
    rules = re.findall(r"^const SECRET_\w+ = /(.+)/i;$", _source("secrets"), re.MULTILINE)
    return re.compile("|".join(rules), re.IGNORECASE)


def _function(names: tuple[str, ...], name: str, *, token: str = TOKEN) -> str:
    """Return files joined into one function; its text never changes, so it is compiled once."""
    sources = _with_token("\n".join(_source(source) for source in names), token)
    return f'async (given) => {{\n"use strict";\n{sources}\nreturn {name}(given);\n}}'


def _block(*names: str) -> str:
    """Return files joined into one statement, which leaves no names behind."""
    sources = "\n".join(_source(name) for name in names)
    return f"{{\n{sources}\n}}"


def _source(name: str) -> str:
    """Return a file without comment lines and indentation, because it is sent to every page."""
    lines = (FOLDER / f"{name}.js").read_text(encoding="utf-8").splitlines()
    code = (line.strip() for line in lines)
    return "\n".join(line for line in code if line and not line.startswith("//"))


def _with_token(source: str, token: str) -> str:
    return source.replace("__TOKEN__", token)


class ScriptNotInstalled(Exception):
    """The called function is not installed in the document."""


def first_line(details: dict[str, Any]) -> str:
    """Return the message of a page script's exception, without its stack."""
    text = details.get("exception", {}).get("description") or details.get("text") or ""
    return str(text).partition("\n")[0]
