"""Documents as a Playwright trace holds them, without what fields hold.

A node is a text, `[name, attributes, *children]`, or `[[snapshots ago, number]]` for one that has
not changed since; nodes are known by their number, so none may go: what is secret is masked in its
place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from runners.browser.page_scripts import looks_secret

MASK = "***"
NAMING = ("type", "name", "id", "autocomplete", "aria-label", "placeholder", "title", "data-testid")
FIELDS = frozenset({"INPUT", "TEXTAREA", "SELECT", "OPTION"})
VALUES = frozenset({"value", "__playwright_value_"})
# Their value is what stands on them.
SHOWN = frozenset({"button", "submit", "reset", "checkbox", "radio"})
ADDRESSES = frozenset({
    "href", "src", "action", "formaction", "poster", "cite", "ping", "xlink:href", "data",
    "__playwright_src__", "__playwright_current_src__",
})  # fmt: skip
PLAIN_META = frozenset({"viewport", "color-scheme", "theme-color", "description"})
LONG_DATA = 64
SHORTEST_SECRET = 4
_TEXTBOX = re.compile(r"textbox|searchbox")


class SnapshotCleaner:
    """Cleans the snapshots of one trace.

    Attributes:
        secrets: what secret fields held, for whoever masks it elsewhere.
    """

    def __init__(self, clean_address: Callable[[str], str]) -> None:
        self._clean_address = clean_address
        self.secrets: set[str] = set()

    def clean(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        """Return a snapshot with its secrets masked."""
        overrides = [
            {**told, "url": self._clean_address(told["url"])}
            for told in snapshot.get("resourceOverrides", [])
        ]
        return {
            **snapshot,
            "frameUrl": self._clean_address(snapshot.get("frameUrl", "")),
            "html": self._node(snapshot["html"]),
            "resourceOverrides": overrides,
        }

    def _node(self, node: Any, *, is_hidden: bool = False, is_in_secret: bool = False) -> Any:
        if isinstance(node, str):
            self._note([node] if is_in_secret else [])
            return MASK if is_hidden or is_in_secret else node
        if not node or not isinstance(node[0], str):
            return node  # one that has not changed
        name, attributes, children = node[0].upper(), *_parts(node)
        is_secret = _is_secret_field(name, attributes)
        inside = {
            "is_hidden": is_hidden or name == "TEXTAREA",
            "is_in_secret": is_in_secret
            or (is_secret and (name == "TEXTAREA" or _is_editable(attributes))),
        }
        if is_secret:
            self._note(attributes[key] for key in VALUES & attributes.keys())
        clean = {
            key: self._attribute(name, attributes, key, value) for key, value in attributes.items()
        }
        return [node[0], clean, *(self._node(child, **inside) for child in children)]

    def _attribute(self, name: str, attributes: dict[str, Any], key: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        lower = key.lower()
        if lower in VALUES and name in FIELDS:
            is_shown = str(attributes.get("type", "")).lower() in SHOWN
            return value if is_shown and not looks_secret(_names(attributes)) else MASK
        if lower == "content" and name == "META":
            return value if str(attributes.get("name", "")).lower() in PLAIN_META else MASK
        if lower.startswith("data-") and (looks_secret(key[5:]) or len(value) > LONG_DATA):
            return MASK
        if lower in ADDRESSES:
            return self._clean_address(value)
        return MASK if lower in ("srcdoc", "nonce") else value

    def _note(self, values: Iterable[Any]) -> None:
        found = (str(value).strip() for value in values)
        self.secrets.update(value for value in found if len(value) >= SHORTEST_SECRET)


def _parts(node: list[Any]) -> tuple[dict[str, Any], list[Any]]:
    return (node[1], node[2:]) if len(node) > 1 else ({}, [])


def _names(attributes: dict[str, Any]) -> str:
    return " ".join(str(attributes[name])[:200] for name in NAMING if name in attributes)


def _is_editable(attributes: dict[str, Any]) -> bool:
    given = str(attributes.get("contenteditable", "false")).lower()
    return given != "false" or bool(_TEXTBOX.fullmatch(str(attributes.get("role", ""))))


def _is_secret_field(name: str, attributes: dict[str, Any]) -> bool:
    if name not in FIELDS and not _is_editable(attributes):
        return False
    return str(attributes.get("type", "")).lower() == "password" or looks_secret(_names(attributes))
