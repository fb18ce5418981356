"""Remove the values of fields and other secrets from the document snapshots of a Playwright trace.

A node is a text, `[name, attributes, *children]`, or `[[snapshots ago, number]]` for a node that
has not changed. Nodes are identified by their number, so none is removed: secrets are masked.
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
NAMING_ATTRIBUTES = (
    "type",
    "name",
    "id",
    "autocomplete",
    "aria-label",
    "placeholder",
    "title",
    "data-testid",
)
FIELDS = frozenset({"INPUT", "TEXTAREA", "SELECT", "OPTION"})
WITH_VALUE = FIELDS | {"BUTTON", "PARAM", "DATA"}  # and custom elements
VALUE_ATTRIBUTES = frozenset({"value", "__playwright_value_"})
# The value of these inputs is their visible label.
VALUE_IS_LABEL = frozenset({"button", "submit", "reset", "checkbox", "radio"})
URL_ATTRIBUTES = frozenset(
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
# Documents, keys, and alternative URLs that were not loaded.
ALWAYS_MASKED = frozenset({"srcdoc", "nonce", "srcset", "imagesrcset"})
PLAIN_META = frozenset({"viewport", "color-scheme", "theme-color", "description"})
MAX_DATA_LENGTH = 64
MIN_SECRET_LENGTH = 4
_TEXTBOX = re.compile(r"textbox|searchbox")


@dataclass(frozen=True, slots=True)
class _Context:
    """What a node's ancestors determine: its label, and whether it is the value of a field, or of a
    secret field.
    """

    label: str = ""
    is_hidden: bool = False
    is_secret: bool = False


class SnapshotCleaner:
    """Cleans the snapshots of one trace.

    Attributes:
        secrets: the values of secret fields, so that they can be masked elsewhere in the trace.
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
            {**override, "url": self._clean_address(override["url"])}
            for override in snapshot.get("resourceOverrides", [])
        ]
        return {
            **snapshot,
            "frameUrl": self._clean_address(snapshot.get("frameUrl", "")),
            "html": self._node(snapshot["html"], _Context()),
            "resourceOverrides": overrides,
        }

    def _node(self, node: Any, context: _Context) -> Any:
        if isinstance(node, str):
            self._add_secrets([node] if context.is_secret else [])
            return MASK if context.is_hidden else node
        if not node or not isinstance(node[0], str):
            return node  # a reference to an unchanged node
        name, attributes, children = node[0].upper(), *_parts(node)
        if name == "LABEL":
            context = replace(context, label=self._labels.around(node))
        if is_secret := self._is_secret_field(name, attributes, context):
            self._add_secrets(attributes[key] for key in VALUE_ATTRIBUTES & attributes.keys())
        if name == "TEXTAREA" or (is_secret and _is_editable(attributes)):
            context = replace(context, is_hidden=True, is_secret=context.is_secret or is_secret)
        clean = {
            key: self._attribute(name, attributes, key, value) for key, value in attributes.items()
        }
        return [node[0], clean, *(self._node(child, context) for child in children)]

    def _is_secret_field(self, name: str, attributes: dict[str, Any], context: _Context) -> bool:
        if name not in FIELDS and not _is_editable(attributes):
            return False
        names = [_names(attributes), context.label, *self._labels.names(attributes)]
        is_password = str(attributes.get("type", "")).lower() == "password"
        return is_password or any(map(looks_secret, names))

    def _attribute(self, name: str, attributes: dict[str, Any], key: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        lower = key.lower()
        if lower in VALUE_ATTRIBUTES and (name in WITH_VALUE or "-" in name):
            is_label = name == "INPUT" and str(attributes.get("type", "")).lower() in VALUE_IS_LABEL
            return value if is_label and not looks_secret(_names(attributes)) else MASK
        if lower == "content" and name == "META":
            return value if str(attributes.get("name", "")).lower() in PLAIN_META else MASK
        if lower in URL_ATTRIBUTES:
            return self._clean_address(value)
        is_long = lower.startswith("data-") and len(value) > MAX_DATA_LENGTH
        return MASK if is_long or lower in ALWAYS_MASKED or _names_key(key) else value

    def _add_secrets(self, values: Iterable[Any]) -> None:
        stripped = (str(value).strip() for value in values)
        self.secrets.update(value for value in stripped if len(value) >= MIN_SECRET_LENGTH)


def _parts(node: list[Any]) -> tuple[dict[str, Any], list[Any]]:
    return (node[1], node[2:]) if len(node) > 1 else ({}, [])


@lru_cache(maxsize=1024)  # pages have many attributes, but few names
def _names_key(attribute: str) -> bool:
    return looks_secret(attribute)


def _names(attributes: dict[str, Any]) -> str:
    return " ".join(str(attributes[name])[:200] for name in NAMING_ATTRIBUTES if name in attributes)


def _is_editable(attributes: dict[str, Any]) -> bool:
    editable = str(attributes.get("contenteditable", "false")).lower()
    return editable != "false" or bool(_TEXTBOX.fullmatch(str(attributes.get("role", ""))))
