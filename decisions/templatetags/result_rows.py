"""The tag `result_rows`: the rows of a list, with the markup of Unfold's `unfold_result_list`.

Unfold's tag renders the headers of all columns, and the classes and the checkbox of each cell, once
for every row. This one does so once for a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.utils import lookup_field
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import FieldDoesNotExist
from django.db.models import BooleanField, DateField, Field, ForeignKey, Model
from django.template import Context, Engine, Library
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from unfold.admin import checkbox
from unfold.templatetags.unfold_list import (
    CHECKBOX_CLASSES,
    LINK_CLASSES,
    ROW_CLASSES,
    result_headers,
)
from unfold.utils import display_for_field, display_for_value

register = Library()
_CHECKBOX = "action_checkbox"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a list.

    Attributes:
        start: The start tag of its cells.
        end: The end tag of its cells.
        text_of: Returns what the cell of a row shows.
        is_link: Whether its cells link to the pages of the rows.
    """

    start: SafeString
    end: SafeString
    text_of: Callable[[Model], Any]
    is_link: bool


def columns_of(cl: ChangeList, headers: list[dict[str, Any]]) -> list[Column]:
    """Return the columns of a list; the first that links to the pages of the rows is their head."""
    names = [str(name) for name in cl.list_display]
    links = [name for name in names if name in (cl.list_display_links or ())]
    return [
        _column(cl, name, header["text"], name in links, name in links[:1])
        for name, header in zip(names, headers, strict=True)
    ]


def _column(cl: ChangeList, name: str, label: object, is_link: bool, is_head: bool) -> Column:
    field = _field(cl, name)
    classes = list(CHECKBOX_CLASSES if name == _CHECKBOX else [f"field-{name}", *ROW_CLASSES])
    if isinstance(field, DateField | ForeignKey):
        classes.append("nowrap")
    tag = "th" if is_head else "td"
    return Column(
        start=format_html(
            '<{} class="{}" data-label="{}">',
            tag,
            " ".join(classes),
            _("Select record") if name == _CHECKBOX else label,
        ),
        end=format_html("</{}>", tag),
        text_of=_text_of(cl, name, field),
        is_link=is_link,
    )


def _field(cl: ChangeList, name: str) -> Field[Any, Any] | None:
    try:
        field = cl.opts.get_field(name)
    except FieldDoesNotExist:
        return None
    return field if isinstance(field, Field) else None


def _text_of(cl: ChangeList, name: str, field: Field[Any, Any] | None) -> Callable[[Model], Any]:
    empty = cl.model_admin.get_empty_value_display()
    if isinstance(field, ForeignKey):
        return lambda row: empty if getattr(row, name) is None else getattr(row, name)
    if isinstance(field, BooleanField):
        icons = {is_set: display_for_field(is_set, field, empty) for is_set in (True, False, None)}
        return lambda row: icons[getattr(row, name)]
    if field is not None:
        return lambda row: display_for_field(getattr(row, name), field, empty)
    if name == _CHECKBOX:
        return _checkbox()
    method = getattr(cl.model_admin, name, None)
    if method is not None and name != "__str__":
        return lambda row: display_for_value(method(row), empty)
    return lambda row: display_for_value(lookup_field(name, row, cl.model_admin)[2], empty)


def _checkbox() -> Callable[[Model], Any]:
    markup = checkbox.render(ACTION_CHECKBOX_NAME, "{}")
    return lambda row: format_html(markup, row.pk)


def rows_of(cl: ChangeList, columns: list[Column]) -> Iterator[SafeString]:
    """Yield the cells of each row."""
    for row in cl.result_list:
        cells = ((one.start, _content(cl, row, one), one.end) for one in columns)
        yield format_html_join("", "{}{}{}", cells)


def _content(cl: ChangeList, row: Model, column: Column) -> SafeString:
    text = column.text_of(row)
    if not column.is_link:
        return conditional_escape(text)
    url = cl.url_for_result(row)
    if cl.preserved_filters:
        filters: Any = {"preserved_filters": cl.preserved_filters, "opts": cl.opts}
        url = add_preserved_filters(filters, url)
    return format_html('<a href="{}" class="{}">{}</a>', url, " ".join(LINK_CLASSES), text)


def _rows(cl: ChangeList, headers: list[dict[str, Any]]) -> list[SafeString]:
    return list(rows_of(cl, columns_of(cl, headers)))


@register.simple_tag(takes_context=True)
def result_rows(context: Context, cl: ChangeList) -> SafeString:
    """Render the rows of a list, with its model's change_list_results.html if there is one."""
    headers = list(result_headers(cl))
    model = f"{cl.opts.app_label}/{cl.opts.model_name}"
    names = [f"admin/{folder}change_list_results.html" for folder in (f"{model}/", "")]
    rows = partial(_rows, cl, headers)  # a template with cells of its own renders none of these
    values = {"cl": cl, "result_headers": headers, "rows": rows}
    return Engine.get_default().select_template(names).render(context.new(values))
