"""The fields of the form, with the values and the errors that they show."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from decisions.foundation.presentation.refusals import refusal_text
from runs.admin.new_run.shapes import Shape
from runs.admin.new_run.words import explained, label_of_choice, title_of

NEW_ROW = "__row__"  # the number of a row in the copy that the page's script inserts
_MISSING_FIELD = re.compile(r'^"([^"]+)" is a required property$')


@dataclass(frozen=True, slots=True)
class InputField:
    """A field, or a group or rows of fields.

    Attributes:
        key: its name in the posted form, as errors name it: `inputs.urls`.
        value: the text that it shows; a secret's is always empty.
        children: of a group its fields, of rows a group each.
        choices: the values to choose from, with their labels.
        new_row: of rows, an empty one.
        is_open: whether an optional group is unfolded: it has a value or an error.
    """

    key: str
    name: str
    label: str
    kind: str
    help: str
    value: str
    error: str
    default: str
    is_required: bool
    is_long: bool
    is_open: bool
    choices: Sequence[tuple[str, str]] = ()
    minimum: Any = None
    maximum: Any = None
    max_length: Any = None
    children: Sequence[InputField] = ()
    new_row: InputField | None = None


class FormFields:
    """The fields of a group's schema.

    Attributes:
        fields: in the schema's order.
        other_errors: messages that belong to no field.
    """

    def __init__(
        self,
        shape: Shape,
        values: Mapping[str, Any],
        errors: Mapping[str, str],
        texts: Mapping[str, str],
        template_id: str = "",
    ) -> None:
        self._errors, self._texts, self._template_id = dict(errors), texts, template_id
        self.fields = self._children(shape, values, "inputs")
        self.other_errors = list(self._errors.values())

    def _children(self, shape: Shape, values: Any, key: str) -> list[InputField]:
        known = values if isinstance(values, Mapping) else {}
        return [
            self._field(part, f"{key}.{name}", name, known.get(name), name in shape.required)
            for name, part in shape.fields.items()
        ]

    def _field(
        self, shape: Shape, key: str, name: str, value: Any, is_required: bool
    ) -> InputField:
        children: list[InputField] = []
        new_row = None
        if shape.kind == "group":
            children = self._children(shape, value, key)
        elif shape.kind == "rows" and shape.item is not None:
            rows = value if isinstance(value, list) and value else [None] * is_required
            children = [
                self._field(shape.item, f"{key}.{number}", str(number + 1), row, is_required=True)
                for number, row in enumerate(rows)
            ]
            new_row = self._field(shape.item, f"{key}.{NEW_ROW}", "", None, is_required=True)
        error = self._take_error(key, is_leaf=shape.kind not in ("group", "rows"))
        is_filled = value not in (None, {}, []) or bool(error)
        schema = shape.schema
        return InputField(
            key=key,
            name=name,
            label=title_of(self._template_id, key),
            kind=shape.kind,
            help=explained(str(schema.get("description", ""))),
            value=self._texts.get(key) or _text(shape, value),
            error=error,
            default=_default(shape),
            is_required=is_required,
            is_long=shape.is_long or (isinstance(value, str) and "\n" in value),
            is_open=is_filled or any(one.is_open for one in children),
            choices=[(str(one), label_of_choice(str(one))) for one in schema.get("enum", ())],
            minimum=schema.get("minimum"),
            maximum=schema.get("maximum"),
            max_length=schema.get("maxLength"),
            children=children,
            new_row=new_row,
        )

    def _take_error(self, key: str, *, is_leaf: bool) -> str:
        """Return the first error about a field, or about a part of what is one field here."""
        if key in self._errors:
            return self._errors.pop(key)
        start = f"{key}."
        inner = next((one for one in self._errors if is_leaf and one.startswith(start)), None)
        if inner is None:
            return ""
        part, message = inner.removeprefix(start), self._errors.pop(inner)
        if part.isdecimal():
            values = {"number": int(part) + 1, "message": message}
            return _("line %(number)s: %(message)s") % values
        return f"{part}: {message}"


def errors_by_field(message: str, details: Mapping[str, Any]) -> dict[str, str]:
    """Return the errors of a refusal by the key of their field; "" for the form as a whole."""
    listed = details.get("errors")
    if not isinstance(listed, list) or not listed:
        path, colon, text = message.partition(": ")
        is_path = path.startswith(("inputs", "options."))
        at_field = colon and is_path
        return {path: refusal_text(text)} if at_field else {"": refusal_text(message)}
    errors: dict[str, str] = {}
    for one in listed:
        path, text = str(one.get("path", "")), str(one.get("message", ""))
        if missing := _MISSING_FIELD.match(text):
            path, text = f"{path}.{missing.group(1)}", _("This field is required.")
        errors.setdefault(path, refusal_text(text))
    return errors


def _text(shape: Shape, value: Any) -> str:
    """Return a value as its field shows it."""
    if value is None or shape.kind in ("secret", "group", "rows"):
        return ""
    if shape.kind == "lines" and isinstance(value, list):
        return "\n".join(map(str, value))
    if shape.kind == "json":
        return json.dumps(value, indent=2, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    is_number = isinstance(value, float) and math.isfinite(value) and value.is_integer()
    return str(int(value)) if is_number else str(value)


def _default(shape: Shape) -> str:
    default = shape.schema.get("default")
    text = "" if default is None else _text(shape, default)
    return label_of_choice(text) if shape.kind == "choice" else text
