"""Read the inputs of a run from a posted form; empty fields are left out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from decisions.foundation.errors import MalformedBody
from decisions.foundation.presentation.refusals import refusal_text
from decisions.foundation.validation.json_input import load_json
from runs.admin.new_run.shapes import Shape

ROWS_MAX = 1000
_PLACE = re.compile(r"line (?P<line>\d+) column (?P<column>\d+)")
_MISSING = object()
_BOOLEANS = {"true": True, "false": False}


class PostedInputs:
    """The inputs in a posted form.

    Attributes:
        errors: messages about texts that are no JSON, by the field's key.
        texts: these texts, for the form to show again.
        value: the inputs, which the template has not validated.
    """

    def __init__(self, shape: Shape, post: Mapping[str, str]) -> None:
        self._post = post
        self.errors: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        value = self._read(shape, "inputs")
        self.value: dict[str, Any] = {} if value is _MISSING else value

    def _read(self, shape: Shape, key: str) -> Any:
        if shape.kind == "group":
            return self._group(shape, key)
        if shape.kind == "rows" and shape.item is not None:
            return self._rows(shape.item, key)
        text = self._post.get(key, "").replace("\r\n", "\n")
        if not text.strip():
            return _MISSING
        if shape.kind == "lines" and shape.item is not None:
            return [_scalar(shape.item, line) for line in map(str.strip, text.split("\n")) if line]
        return self._json(text, key) if shape.kind == "json" else _scalar(shape, text)

    def _group(self, shape: Shape, key: str) -> Any:
        values = {name: self._read(part, f"{key}.{name}") for name, part in shape.fields.items()}
        given = {name: value for name, value in values.items() if value is not _MISSING}
        return given or _MISSING

    def _rows(self, item: Shape, key: str) -> Any:
        start = f"{key}."
        numbers = {
            one[len(start) :].partition(".")[0] for one in self._post if one.startswith(start)
        }
        rows = sorted(int(one) for one in numbers if one.isdecimal() and len(one) < 6)[:ROWS_MAX]
        values = [self._read(item, f"{key}.{number}") for number in rows]
        return [value for value in values if value is not _MISSING] or _MISSING

    def _json(self, text: str, key: str) -> Any:
        try:
            return load_json(text.encode("utf-8", "surrogatepass"))
        except MalformedBody as refusal:
            self.errors[key] = _problem(refusal.message)
            self.texts[key] = text
            return _MISSING


def _problem(message: str) -> str:
    """Return why a text is no JSON; of a syntax error, where it is."""
    if place := _PLACE.search(message):
        text = _("The text is not valid JSON: see line %(line)s, column %(column)s.")
        return text % place.groupdict()
    return refusal_text(message.replace("The body", "The text"))


def _scalar(shape: Shape, text: str) -> Any:
    """Return a value of the schema's type; a text that is none, for the schema to refuse."""
    if shape.kind == "boolean":
        return _BOOLEANS.get(text, text)
    if shape.kind == "choice":
        return next((one for one in shape.schema["enum"] if str(one) == text), text)
    if shape.kind != "number":
        return text
    return _number(text)


def _number(text: str) -> Any:
    text = text.strip()
    if text.removeprefix("-").isdecimal() and text.isascii():
        return int(text[:400])
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text
