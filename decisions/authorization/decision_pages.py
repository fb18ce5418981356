"""What a person sees before deciding: the context of the call and its arguments, page by page.

The last page has the digest that the answer names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_noop as _

from decisions.authorization.call_information import CallContext, CallPreview
from decisions.authorization.sealed_arguments import (
    CannotBeShown,
    change_since_request,
    leaves,
    open_arguments,
    shown_digest,
)
from decisions.foundation.presentation.visible_text import (
    SECRET_OPEN,
    Fragment,
    as_lines,
    fragments_of,
    parts_of,
    visible,
)
from decisions.models import Confirmation, ConfirmationStatus, Decision
from decisions.signals import call_information

FRAGMENT = 2_000  # shown characters
PAGE = 12_000  # shown characters of all fragments of a page
VALUES = 200  # fragments of a page
_RENEW = _(
    "It can no longer be confirmed. Request it anew: its run then requests a confirmation with the"
    " present state. Or refuse it."
)
_REPEAT = _(
    "It can no longer be confirmed. When the caller repeats the call, it requests a confirmation"
    " with the present state. Or refuse it."
)


@dataclass(frozen=True, slots=True)
class DecisionPage:
    """One page about a decision; every text in it is visible.

    Attributes:
        fragments: of the previews and the arguments.
        digest: what an answer names; on the last page, else empty.
        problem: why the arguments cannot be shown: the decision cannot be confirmed.
        change: why the waiting decision cannot be confirmed any more: what the call works on has
            changed since the call was requested.
        may_renew: its run can request a new confirmation (`confirmations.request_anew`).
    """

    number: int
    count: int
    facts: Sequence[tuple[str, str]]
    steps: Sequence[str]
    fragments: Sequence[Fragment]
    digest: str
    problem: str = ""
    change: str = ""
    may_renew: bool = False

    @property
    def is_last(self) -> bool:
        """Whether this is the last page."""
        return self.number == self.count


def decision_page(decision: Decision, number: object = 1) -> DecisionPage:
    """Return a page about a decision; the first one if there is no page of this number."""
    try:
        digest, hidden = shown_digest(decision), ""
    except CannotBeShown as problem:
        digest, hidden = "", problem.reason
    context = call_information().context_of(decision)
    facts = [(name, visible(text, 1_000)) for name, text in context.facts]
    steps = [visible(text, 200) for text in context.steps]
    is_waiting = _is_waiting(decision)
    may_renew = is_waiting and decision.run_id is not None
    if hidden:
        return DecisionPage(1, 1, facts, steps, [], "", hidden, may_renew=may_renew)
    if change := change_since_request(decision, context.basis):
        digest, context = "", replace(context, previews=())
    pages = _pages(decision, context)
    wanted = next((at for at in range(1, len(pages) + 1) if str(at) == str(number)), 1)
    is_last = wanted == len(pages)
    page = DecisionPage(
        wanted, len(pages), facts, steps, pages[wanted - 1], digest if is_last else ""
    )
    if not change or not is_waiting:
        return page
    change = f"{change} {gettext(_RENEW if may_renew else _REPEAT)}"
    return replace(page, change=change, may_renew=may_renew)


def as_text(page: DecisionPage) -> str:
    """Return a page for a terminal."""
    lines = [f"{name}: {text}" for name, text in page.facts]
    lines += [f"Step before: {step}" for step in page.steps]
    for fragment in page.fragments:
        about = ", ".join(filter(None, (fragment.about, fragment.range)))
        lines += ["", f"{fragment.name} ({about})"]
        lines += [f"  | {line}" for line in as_lines(fragment.parts).split("\n")]
    if page.problem:
        lines += ["", f"The arguments cannot be shown. {page.problem}"]
    if page.change:
        lines += ["", page.change]
    return "\n".join(lines)


def _is_waiting(decision: Decision) -> bool:
    return Confirmation.objects.filter(
        decision=decision, status=ConfirmationStatus.WAITING
    ).exists()


def visible_arguments(decision: Decision) -> list[dict[str, str]]:
    """Return each value of a decision's arguments as a terminal shows it: its name, its type and
    length, and its text with every character visible.

    Raises:
        CannotBeShown: As `open_arguments`.
    """
    shown = []
    for name, value in leaves(open_arguments(decision)):
        text, about = _described(value)
        lines = as_lines(parts_of(text))
        shown.append({"name": _value_name(name), "about": about, "text": lines})
    return shown


def _pages(decision: Decision, context: CallContext) -> list[list[Fragment]]:
    pages: list[list[Fragment]] = [[]]
    used = 0
    for fragment in _fragments(open_arguments(decision), context.previews):
        if pages[-1] and (used + fragment.cost > PAGE or len(pages[-1]) >= VALUES):
            pages.append([])
            used = 0
        pages[-1].append(fragment)
        used += fragment.cost
    return pages


def _fragments(args: Mapping[str, Any], previews: Sequence[CallPreview]) -> Iterator[Fragment]:
    for preview in previews:
        yield from fragments_of(
            visible(preview.name),
            preview.text,
            visible(preview.about),
            size=FRAGMENT,
            is_diff=preview.is_diff,
        )
    for name, value in leaves(args):
        text, about = _described(value)
        yield from fragments_of(_value_name(name), text, about, size=FRAGMENT)


def _value_name(name: str) -> str:
    return visible(name) or "arguments"


def _described(value: Any) -> tuple[str, str]:
    """Return a value as text, and its type and length; no length of a text with secrets."""
    if isinstance(value, str) and SECRET_OPEN in value:
        return value, gettext("text with a secret")
    if isinstance(value, str):
        return value, _about_text(value)
    kinds = {
        bool: gettext("true or false"),
        int: gettext("number"),
        float: gettext("number"),
        dict: gettext("empty object"),
    }
    about = gettext("nothing") if value is None else kinds.get(type(value), gettext("empty list"))
    return json.dumps(value), about


def _about_text(text: str) -> str:
    about = ngettext("text, %(n)s character", "text, %(n)s characters", len(text))
    about %= {"n": len(text)}
    lines = text.count("\n") + 1
    if lines == 1:
        return about
    return gettext("%(about)s, %(lines)s lines") % {"about": about, "lines": lines}
