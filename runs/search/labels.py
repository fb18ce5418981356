"""Labels of a run: up to LABELS_MAX pairs of name and value by which people find and group runs.

They are shown to everyone who may see the run, so they are no place for secrets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from decisions.foundation.errors import InvalidInput

LABELS_MAX = 20
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$"
# No comma, which separates labels in a filter, no control characters, no blanks at the ends.
VALUE_PATTERN = r"^[^\s,\x00-\x1f\x7f]([^,\x00-\x1f\x7f]{0,98}[^\s,\x00-\x1f\x7f])?$"


def check_labels(labels: Any, *, where: str = "options.labels") -> dict[str, str]:
    """Return valid labels.

    Raises:
        InvalidInput: They are no object of texts, too many, or one is malformed.
    """
    if not isinstance(labels, Mapping):
        raise InvalidInput(f'{where}: an object of names and values, such as {{"env": "test"}}.')
    if len(labels) > LABELS_MAX:
        raise InvalidInput(f"{where}: {len(labels)} labels, {LABELS_MAX} are allowed.")
    for name, value in labels.items():
        if re.fullmatch(NAME_PATTERN, str(name)) is None:
            raise InvalidInput(
                f"{where}: the name {str(name)[:64]!r}: 1 to 63 letters, digits and . _ / -,"
                " beginning with a letter or a digit."
            )
        if not _is_value(value):
            raise InvalidInput(
                f"{where}.{name}: a text of 1 to 100 characters without commas, control characters"
                " and blanks at its ends."
            )
    return dict(labels)


def _is_value(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(VALUE_PATTERN, value) is not None


def parse_labels(text: str, *, where: str = "label") -> dict[str, str]:
    """Return labels that are written `name=value`, with commas between them.

    Raises:
        InvalidInput: One is malformed, or given twice.
    """
    labels: dict[str, str] = {}
    for one in text.split(","):
        name, mark, value = one.strip().partition("=")
        if not mark or name in labels:
            problem = "is given twice" if mark else "is not written name=value"
            raise InvalidInput(f"{where}: {one.strip()[:64]!r} {problem}.")
        labels[name] = value
    return check_labels(labels, where=where)
