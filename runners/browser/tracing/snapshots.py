"""Documents as a Playwright trace holds them, without what fields hold.

A node is a text, `[name, attributes, *children]`, or `[[snapshots ago, number]]` for one that has
not changed since; nodes are known by their number, so none may go: what is secret is masked in its
place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from runners.browser.page_scripts import looks_secret
from runners.browser.tracing.labels import Labels

MASK = "***"
NAMING = ("type", "name", "id", "autocomplete", "aria-label", "placeholder", "title", "data-testid")
FIELDS = frozenset({"INPUT", "TEXTAREA", "SELECT", "OPTION"})
VALUED = FIELDS | {"BUTTON", "PARAM", "DATA"}  # and elements of the page's own making
VALUES = frozenset({"value", "__playwright_value_"})
# Their value is what stands on them.
SHOWN = frozenset({"button", "submit", "reset", "checkbox", "radio"})
ADDRESSES = frozenset(
    {
        "href",
        "src",
        "action",
        "formaction",
        "poster",
        "cite",
        "ping",
        "xlink:href",
        "data",
        "__playwright_src__",
        "__playwright_current_src__",
    }
)
# Documents, keys, and lists of addresses that nobody needs beside the one that was loaded.
NEVER_KEPT = frozenset({"srcdoc", "nonce", "srcset", "imagesrcset"})
PLAIN_META = frozenset({"viewport", "color-scheme", "theme-color", "description"})
LONG_DATA = 64
SHORTEST_SECRET = 4
_TEXTBOX = re.compile(r"textbox|searchbox")


@dataclass(frozen=True, slots=True)
class _Place:
    """What is known of a node by those around it: the label that it stands in, and whether it is
    what a field holds, or a secret one.
    """

    label: str = ""
    is_hidden: bool = False
    is_secret: bool = False


class SnapshotCleaner:
    """Cleans the snapshots of one trace.

    Attributes:
        secrets: what secret fields held, for whoever masks it elsewhere.
    """

    def __init__(self, clean_address: Callable[[str], str]) -> None:
        self._clean_address = clean_address
        self.secrets: set[str] = set()
        self._labels = Labels()
        self._frames: dict[str, Labels] = {}

    def clean(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        """Return a snapshot with its secrets masked."""
        self._labels = self._frames.setdefault(str(snapshot.get("frameId", "")), Labels())
        self._labels.read(snapshot["html"])
        overrides = [
            {**told, "url": self._clean_address(told["url"])}
            for told in snapshot.get("resourceOverrides", [])
        ]
        return {
            **snapshot,
            "frameUrl": self._clean_address(snapshot.get("frameUrl", "")),
            "html": self._node(snapshot["html"], _Place()),
            "resourceOverrides": overrides,
        }

    def _node(self, node: Any, place: _Place) -> Any:
        if isinstance(node, str):
            self._note([node] if place.is_secret else [])
            return MASK if place.is_hidden else node
        if not node or not isinstance(node[0], str):
            return node  # one that has not changed
        name, attributes, children = node[0].upper(), *_parts(node)
        if name == "LABEL":
            place = replace(place, label=self._labels.around(node))
        if is_secret := self._is_secret_field(name, attributes, place):
            self._note(attributes[key] for key in VALUES & attributes.keys())
        if name == "TEXTAREA" or (is_secret and _is_editable(attributes)):
            place = replace(place, is_hidden=True, is_secret=place.is_secret or is_secret)
        clean = {
            key: self._attribute(name, attributes, key, value) for key, value in attributes.items()
        }
        return [node[0], clean, *(self._node(child, place) for child in children)]

    def _is_secret_field(self, name: str, attributes: dict[str, Any], place: _Place) -> bool:
        if name not in FIELDS and not _is_editable(attributes):
            return False
        names = [_names(attributes), place.label, *self._labels.names(attributes)]
        is_password = str(attributes.get("type", "")).lower() == "password"
        return is_password or any(map(looks_secret, names))

    def _attribute(self, name: str, attributes: dict[str, Any], key: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        lower = key.lower()
        if lower in VALUES and (name in VALUED or "-" in name):
            is_shown = name == "INPUT" and str(attributes.get("type", "")).lower() in SHOWN
            return value if is_shown and not looks_secret(_names(attributes)) else MASK
        if lower == "content" and name == "META":
            return value if str(attributes.get("name", "")).lower() in PLAIN_META else MASK
        if lower in ADDRESSES:
            return self._clean_address(value)
        is_long = lower.startswith("data-") and len(value) > LONG_DATA
        return MASK if is_long or lower in NEVER_KEPT or _names_key(key) else value

    def _note(self, values: Iterable[Any]) -> None:
        found = (str(value).strip() for value in values)
        self.secrets.update(value for value in found if len(value) >= SHORTEST_SECRET)


def _parts(node: list[Any]) -> tuple[dict[str, Any], list[Any]]:
    return (node[1], node[2:]) if len(node) > 1 else ({}, [])


@lru_cache(maxsize=1024)  # pages have many attributes of few names
def _names_key(attribute: str) -> bool:
    return looks_secret(attribute)


def _names(attributes: dict[str, Any]) -> str:
    return " ".join(str(attributes[name])[:200] for name in NAMING if name in attributes)


def _is_editable(attributes: dict[str, Any]) -> bool:
    given = str(attributes.get("contenteditable", "false")).lower()
    return given != "false" or bool(_TEXTBOX.fullmatch(str(attributes.get("role", ""))))
