"""Template filters of the admin pages: functions of `decisions.foundation.presentation`."""

from __future__ import annotations

from django import template

from decisions.foundation.presentation import (
    formatting,
    html,
    markdown,
    refusals,
    visible_text,
    words,
)

register = template.Library()
register.filter("duration", formatting.duration)
register.filter("size", formatting.size)
register.filter("short_id", formatting.short_id)
register.filter("pretty_json", formatting.pretty_json)
register.filter("one_line", formatting.one_line)
register.filter("breadcrumb", html.breadcrumb)
register.filter("visible", visible_text.visible)
register.filter("revealed", visible_text.revealed)
register.filter("shown_html", html.shown_html)
register.filter("plain_text", markdown.plain_text)
register.filter("plain_lines", markdown.plain_lines)
register.filter("refusal_text", refusals.refusal_text)
register.filter("word", words.word)
register.filter("moment", html.moment)
register.filter("status_pill", html.status_pill)
