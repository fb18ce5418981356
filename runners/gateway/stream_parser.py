"""Finds the updates of an answer while it is still coming (S3 §4.2).

A runner that lets its caller watch writes `{"updates":[` first and each update when it has it; the
elements of that array are cut out here, byte by byte as little as may be. An answer that begins
otherwise is left to be read when it is whole.
"""

from __future__ import annotations

import re

_HEAD = re.compile(rb'[ \t\r\n]*\{[ \t\r\n]*"updates"[ \t\r\n]*:[ \t\r\n]*\[')
_HEAD_MAX = 1024
_DEPTH_MAX = 255
_OUTSIDE = re.compile(rb'["{}\[\],]')
_INSIDE = re.compile(rb'["\\]')  # of a text


class UpdateCutter:
    """Cuts the elements out of an array as its bytes come; each is returned once, in order."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._element = bytearray()
        self._in_array: bool | None = None  # None: it cannot be told yet
        self._in_text = self._escaped = False
        self._depth = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes of the answer; return the JSON of the elements that they ended."""
        if self._in_array is None:
            data = self._begin(data)
        return self._cut(data) if self._in_array else []

    def _begin(self, data: bytes) -> bytes:
        """Return what of the bytes belongs to the array, once its beginning is here."""
        self._head += data
        bracket = self._head.find(b"[")
        if bracket < 0:
            self._in_array = False if len(self._head) > _HEAD_MAX else None
            return b""
        found = _HEAD.fullmatch(self._head, 0, bracket + 1)
        self._in_array = found is not None
        rest, self._head = bytes(self._head[bracket + 1 :]), bytearray()
        return rest

    def _cut(self, data: bytes) -> list[bytes]:
        ended: list[bytes] = []
        begin = at = 0
        while self._in_array:
            end = None
            if self._in_text:
                passed = self._pass_text(data, at)
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

    def _pass_text(self, data: bytes, at: int) -> int | None:
        """Return where the text ends that is under way at `at`; None: not in this data."""
        if self._escaped and at < len(data):
            self._escaped, at = False, at + 1
        while (found := _INSIDE.search(data, at)) is not None:
            at = found.end()
            if found[0] == b'"':
                self._in_text = False
                return at
            if at == len(data):
                self._escaped = True
                return None
            at += 1
        return None

    def _end_of_element(self, mark: bytes, at: int) -> int | None:
        """Take a mark outside of texts, which ends at `at`; return where an element of the array
        ends by it: objects end with their last mark, whatever comes after it and whenever.
        """
        if mark == b'"':
            self._in_text = True
        elif mark in b"{[":
            self._depth += 1
            if self._depth > _DEPTH_MAX:  # no answer that is taken is as deep
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
