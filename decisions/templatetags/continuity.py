"""Filters of the admin's pages; what they do: `decisions.wording` and `decisions.labels`."""

from __future__ import annotations

from django import template

from decisions import labels, wording

register = template.Library()
register.filter("duration", wording.duration)
register.filter("size", wording.size)
register.filter("short_id", wording.short_id)
register.filter("pretty_json", wording.pretty_json)
register.filter("one_line", wording.one_line)
register.filter("moment", labels.moment)
register.filter("status_pill", labels.status_pill)
