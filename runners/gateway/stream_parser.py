"""Find the updates of a response while it is still arriving (S3 §4.2).

A runner that streams updates writes `{"updates":[` first, then each update when it has it. This
module splits the elements out of that array. A response that starts otherwise is parsed once it is
whole.
"""

from __future__ import annotations

import re

_HEAD = re.compile(rb'[ \t\r\n]*\{[ \t\r\n]*"updates"[ \t\r\n]*:[ \t\r\n]*\[')
_HEAD_MAX = 1024
_DEPTH_MAX = 255
_OUTSIDE = re.compile(rb'["{}\[\],]')
_INSIDE = re.compile(rb'["\\]')  # of a string


class UpdateSplitter:
    """Splits a JSON array into its elements as its bytes arrive; returns each once, in order."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._element = bytearray()
        self._in_array: bool | None = None  # None: not known yet
        self._in_string = self._escaped = False
        self._depth = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Accept the next bytes; return the JSON of the elements that they complete."""
        if self._in_array is None:
            data = self._find_array(data)
        return self._split(data) if self._in_array else []

    def _find_array(self, data: bytes) -> bytes:
        """Return the bytes that belong to the array, once its start has arrived."""
        self._head += data
        bracket = self._head.find(b"[")
        if bracket < 0:
            self._in_array = False if len(self._head) > _HEAD_MAX else None
            return b""
        found = _HEAD.fullmatch(self._head, 0, bracket + 1)
        self._in_array = found is not None
        rest, self._head = bytes(self._head[bracket + 1 :]), bytearray()
        return rest

    def _split(self, data: bytes) -> list[bytes]:
        ended: list[bytes] = []
        begin = at = 0
        while self._in_array:
            end = None
            if self._in_string:
                passed = self._end_of_string(data, at)
                if passed is None:
                    break
                at = passed
                end = None if self._depth else at
            else:
                found = _OUTSIDE.search(data, at)
                if found is None:
                    break
                at = found.end()
                end = self._end_of_element(found[0], at)
            if end is not None:
                ended.append(bytes(self._element + data[begin:end]).strip())
                self._element.clear()
                begin = at
        if self._in_array:
            self._element += data[begin:]
        return [element for element in ended if element]

    def _end_of_string(self, data: bytes, at: int) -> int | None:
        """Return where the string that contains `at` ends; None: not in this data."""
        if self._escaped and at < len(data):
            self._escaped, at = False, at + 1
        while (found := _INSIDE.search(data, at)) is not None:
            at = found.end()
            if found[0] == b'"':
                self._in_string = False
                return at
            if at == len(data):
                self._escaped = True
                return None
            at += 1
        return None

    def _end_of_element(self, mark: bytes, at: int) -> int | None:
        """Process a structural character that ends at `at`; return where an array element ends with
        it. An object ends at its closing brace, before the next character arrives.
        """
        if mark == b'"':
            self._in_string = True
        elif mark in b"{[":
            self._depth += 1
            if self._depth > _DEPTH_MAX:  # deeper than any valid response
                self._in_array = False
        elif mark in b"}]" and self._depth:
            self._depth -= 1
            return None if self._depth else at
        elif mark != b",":
            self._in_array = False
            return at - 1
        elif not self._depth:
            return at - 1
        return None
