"""Names of fields in the snapshots of a Playwright trace, apart from their own attributes: labels
around them or for them, and elements that aria-labelledby refers to.

A snapshot contains only the nodes that changed; `[[snapshots ago, number]]` refers to a node of an
earlier one. Numbers count the nodes of a snapshot, children before their parents.
"""

from __future__ import annotations

from typing import Any

MAX_LENGTH = 200  # characters of a name
# The content of these elements is not part of a name.
CONTENT_IS_VALUE = frozenset({"TEXTAREA", "SELECT", "SCRIPT", "STYLE"})


class Labels:
    """The texts in the snapshots of one frame, which must be read in order."""

    def __init__(self) -> None:
        self._texts: list[list[str]] = []  # by snapshot, then by number
        self._of_element: dict[str, str] = {}  # by the element's id attribute
        self._of_field: dict[str, str] = {}  # by the id of the field that the label is for
        self._around: dict[int, str] = {}  # by id() of the label's node in this snapshot

    def read(self, html: Any) -> None:
        """Read the next snapshot; the caller keeps it alive until the following one is read."""
        self._texts.append([])
        self._around.clear()
        self._text(html)

    def names(self, attributes: dict[str, Any]) -> list[str]:
        """Return the labels of a field with these attributes."""
        referred = str(attributes.get("aria-labelledby", "")).split()
        named = [self._of_element.get(element_id, "") for element_id in referred]
        return [*named, self._of_field.get(str(attributes.get("id", "")), "")]

    def around(self, node: list[Any]) -> str:
        """Return the text of a label node of the current snapshot; "" for any other node."""
        return self._around.get(id(node), "")

    def _text(self, node: Any) -> str:
        if isinstance(node, str):
            self._texts[-1].append(node[:MAX_LENGTH])
            return node[:MAX_LENGTH]
        if not node or not isinstance(node[0], str):
            return self._unchanged(node)
        name, attributes = node[0].upper(), node[1] if len(node) > 1 else {}
        inside = [self._text(child) for child in node[2:]]
        text = "" if name in CONTENT_IS_VALUE else "".join(inside)[:MAX_LENGTH]
        self._texts[-1].append(text)
        if "id" in attributes:
            self._of_element[str(attributes["id"])] = text
        if name == "LABEL":
            self._around[id(node)] = text
            self._of_field[str(attributes.get("for", ""))] = text
        return text

    def _unchanged(self, node: Any) -> str:
        try:
            ago, number = map(int, node[0])
            return self._texts[-1 - ago][number]
        except (IndexError, TypeError, ValueError):
            return ""
