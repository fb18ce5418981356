"""What names fields in the documents of a Playwright trace, besides their own attributes: labels
around them or for them, and elements that they refer to.

A snapshot tells only the nodes that have changed; `[[snapshots ago, number]]` stands for one that
has not. Numbers count a snapshot's own nodes, children before their parents.
"""

from __future__ import annotations

from typing import Any

LONGEST = 200  # characters of a name
# What these hold is no name of theirs or of a label around them.
VALUES_OF_FIELDS = frozenset({"TEXTAREA", "SELECT", "SCRIPT", "STYLE"})


class Labels:
    """The texts in the snapshots of one frame, read in their order."""

    def __init__(self) -> None:
        self._texts: list[list[str]] = []  # by snapshot, by number
        self._of_element: dict[str, str] = {}  # by the element's id
        self._of_field: dict[str, str] = {}  # by the id of the field that the label is for
        self._around: dict[int, str] = {}  # by the identity of the label's node, in this snapshot

    def read(self, html: Any) -> None:
        """Read the next snapshot, which has to live until the one after is read."""
        self._texts.append([])
        self._around.clear()
        self._text(html)

    def names(self, attributes: dict[str, Any]) -> list[str]:
        """Return what names a field with these attributes."""
        referred = str(attributes.get("aria-labelledby", "")).split()
        named = [self._of_element.get(element_id, "") for element_id in referred]
        return [*named, self._of_field.get(str(attributes.get("id", "")), "")]

    def around(self, node: list[Any]) -> str:
        """Return the text of a label of the present snapshot; "" for every other node."""
        return self._around.get(id(node), "")

    def _text(self, node: Any) -> str:
        if isinstance(node, str):
            self._texts[-1].append(node[:LONGEST])
            return node[:LONGEST]
        if not node or not isinstance(node[0], str):
            return self._unchanged(node)
        name, attributes = node[0].upper(), node[1] if len(node) > 1 else {}
        inside = [self._text(child) for child in node[2:]]
        text = "" if name in VALUES_OF_FIELDS else "".join(inside)[:LONGEST]
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
