"""Whether a page shows a submitted form again, and which texts are new on it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import Any

from runners.browser.errors import ContextLost
from runners.browser.session.submit_watch import FormBefore
from runners.browser.session.tab import Tab

ANSWER_SECONDS = 5.0
REACTION_SECONDS = 3.0  # for a page whose script leaves or empties the form
PENDING_SECONDS = 10.0  # for a page that waits for an answer, or says that it is loading
POLL_SECONDS = 0.1
TEXT_CHARACTERS = 300


async def form_before(tab: Tab) -> FormBefore | None:
    """Return what the page shows before its form is submitted; None if no form was filled in it."""
    try:
        shown = await tab.run_command("shownForm", seconds=ANSWER_SECONDS)
    except ContextLost:
        return None
    return FormBefore(tab.documents, shown) if shown["form"] else None


async def form_shown_again(tab: Tab, before: FormBefore) -> dict[str, Any] | None:
    """Return {seemsAccepted, newText} if the page shows the form with the same fields again; None
    if it does not. A script may need some seconds to leave the form: they are waited for.

    `newText` is what the page shows and did not before, error-like elements first. The form seems
    accepted if its texts were emptied, nothing that is new looks like an error, and the page did
    not load again or has a new text that it marks as a success.
    """
    began = time.monotonic()
    while True:
        again, is_pending = None, True
        is_same = tab.documents == before.documents
        with contextlib.suppress(ContextLost):
            shown = await tab.run_command("shownForm", seconds=ANSWER_SECONDS)
            if not _shows_form(before.shown, shown):
                return None
            is_pending = tab.is_leaving or shown["isPending"]
            again = _compare(before, shown, is_same_document=is_same)
        is_final = again is not None and (again["seemsAccepted"] or not is_same)
        seconds = PENDING_SECONDS if is_pending else 0.0 if is_final else REACTION_SECONDS
        if time.monotonic() - began >= seconds:
            return again
        await asyncio.sleep(POLL_SECONDS)


def _shows_form(before: Mapping[str, Any], shown: Mapping[str, Any]) -> bool:
    keys = {field["key"] for field in shown["fields"]}
    return all(field["key"] in keys for field in before["form"])


def _compare(
    before: FormBefore, shown: Mapping[str, Any], *, is_same_document: bool
) -> dict[str, Any]:
    old = {one["text"] for part in ("notices", "lines") for one in before.shown[part]}
    new = [one for part in ("notices", "lines") for one in shown[part] if one["text"] not in old]
    new.sort(key=lambda one: bool(one["kind"] != "error"))
    kinds = {one["kind"] for one in new}
    new_text = ""
    for one in new:
        if one["text"] not in new_text:  # the texts in a notice are lines too
            new_text += f" {one['text']}" if new_text else one["text"]
    seems_accepted = (
        _is_emptied(before.shown, shown)
        and "error" not in kinds
        and bool(new_text)
        and (is_same_document or "success" in kinds)
    )
    return {"seemsAccepted": seems_accepted, "newText": new_text[:TEXT_CHARACTERS]}


def _is_emptied(before: Mapping[str, Any], shown: Mapping[str, Any]) -> bool:
    """Return whether the form had texts, and all of them are gone."""
    had = {field["key"] for field in before["form"] if field["hasText"]}
    has = {field["key"] for field in shown["fields"] if field["hasText"]}
    return bool(had) and not had & has
