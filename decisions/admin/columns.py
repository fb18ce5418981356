"""Columns of lists and pages that show one expression of a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin


def column(label: Any, text_of: Callable[[Any], object]) -> Any:
    """Return an attribute of a model admin that `list_display` and `fields` can name: it shows what
    `text_of` returns of a row, under the label.
    """
    return staticmethod(admin.display(description=label)(text_of))
