"""What the page showed when a browser action was chosen: shown to the person who confirms it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from django.db.models import QuerySet

from decisions.authorization.authorize import ToolCallRequest
from decisions.foundation.presentation.visible_text import revealed, secret_named
from decisions.foundation.security.masking import MASK
from runners.actions.catalogue import ACTIONS, OBSERVE, TYPE
from runs.agent.journal_view import CALL, PAGE
from runs.models import Run

_SECRET_WORDS = re.compile(
    r"passw|passphrase|passcode|secret|token|api[ _-]?key|\b(pin|otp|cvv|cvc)\b"
    r"|密码|密碼|口令|密钥|密鑰|验证码|驗證碼|令牌",
    re.IGNORECASE,
)
# A line of an observation: a password field, a field whose value is masked, or one whose label
# names a secret.
_SECRET_FIELD = re.compile(
    rf"\[\d+\] (input password\b|.* = \*\*\*"
    rf"|(input|textarea)[^\"]*\"[^\"]*({_SECRET_WORDS.pattern}))",
    re.IGNORECASE,
)
ELEMENTS = {"clickId": "element", "toClickId": "toElement"}  # argument, field of its line
RUNS = 10  # of the session, before this one
LINE_CHARS, TITLE_CHARS = 300, 100
Observed = tuple[Any, Mapping[str, Any], bool]


class EndedStep(Protocol):
    """A step in the journal, as its row or as the template's `StepView`."""

    @property
    def input(self) -> Mapping[str, Any]:
        """The planned input."""

    @property
    def output(self) -> Mapping[str, Any] | None:
        """The output, once the step succeeded."""


def with_shown_page(
    run: Run, request: ToolCallRequest, journal: Sequence[EndedStep]
) -> ToolCallRequest:
    """Return the request of a browser action with what a person needs to decide on it: the newest
    observation's title and address of the page, and its lines of the elements that the action
    names. A text that is typed into a secret field is masked. On the run's database thread.

    Args:
        journal: the run's steps before this one.
    """
    if request.tool not in ACTIONS or request.args.get("tabId") is None:
        return request
    shown = _shown(_observations(run, journal), request.args)
    is_secret = _is_secret(shown.get("element", ""), request.args)
    return with_facts(request, shown, is_secret=is_secret)


def with_facts(
    request: ToolCallRequest, shown: Mapping[str, str], *, is_secret: bool
) -> ToolCallRequest:
    """Return the request with facts of the page for a person; what it types into a secret field
    is masked.
    """
    masked = request.args if request.display_args is None else request.display_args
    exact, masked = {**request.args, **shown}, {**masked, **shown}
    if request.tool == TYPE.name and is_secret:
        length = f"text, {len(str(request.args.get('text', '')))} characters"
        exact, masked = {**exact, "text": secret_named(length)}, {**masked, "text": MASK}
    return replace(request, shown_args=exact, display_args=masked)


def types_secret(task_id: str, args: Mapping[str, Any]) -> bool:
    """Return whether a host's call of `browser_type` types into a secret field, by what the newest
    observation of its session showed.
    """
    observations = _of_runs(Run.objects.filter(task_id=task_id))
    return _is_secret(_shown(observations, args).get("element", ""), args)


def _shown(observations: Iterator[Observed], args: Mapping[str, Any]) -> dict[str, str]:
    """Return the page of a call's tab, and the lines of the elements that the call names."""
    shown: dict[str, str] = {}
    for tab, page, is_continued in observations:
        if tab != args.get("tabId"):
            continue
        title = str(page.get("title", ""))[:TITLE_CHARS] or "without a title"
        shown.setdefault("page", f"{title}, {page.get('url')}")
        for name, field in ELEMENTS.items():
            if field not in shown and (line := _line_of(args.get(name), page)):
                shown[field] = line
        if not is_continued:
            break
    return shown


def _is_secret(lines: str, args: Mapping[str, Any]) -> bool:
    """Return whether an element is a field for a password or another secret, by the lines of the
    elements that it may be, or by its XPath where the call has no clickId.
    """
    if args.get("clickId") is None:
        return _SECRET_WORDS.search(str(args.get("xpath") or "")) is not None
    return is_secret_field(lines)


def is_secret_field(line: str) -> bool:
    """Return whether an element is a field for a password or another secret, by its line."""
    return _SECRET_FIELD.search(line) is not None


def subject_of(request: ToolCallRequest) -> str:
    """Return on which element and page a call works, for the question to a person; else ""."""
    shown = request.shown_args if request.tool in ACTIONS and request.shown_args else {}
    if "page" not in shown:
        return ""
    named = " and ".join(str(shown[field]) for field in ELEMENTS.values() if field in shown)
    return revealed(f"{f' on {named}' if named else ''} of the page {shown['page']}"[:1000])


def _line_of(number: Any, page: Mapping[str, Any]) -> str:
    """Return the line of the element with this clickId; all, if several begin like it. The
    star of a new element is left out.
    """
    found = [line[:LINE_CHARS] for line in _lines_of(number, page)]
    return " or ".join(one.replace("]* ", "] ", 1) for one in found[:3])


def _lines_of(number: Any, page: Mapping[str, Any]) -> list[str]:
    """Return all lines that begin like that of the element with this clickId, whole. A text of the
    page is none: the observation marks one that begins so (`textLine` in outline.js).
    """
    if not isinstance(number, int | float):
        return []
    line = re.compile(rf"^\[{int(number)}\]\*? .+", re.MULTILINE)
    return [match[0] for match in line.finditer(str(page.get("text", "")))]


def _observations(run: Run, journal: Sequence[EndedStep]) -> Iterator[Observed]:
    """Yield (tabId, observation, whether it continues the one before), the newest first."""
    yield from _of_journal(journal)
    if run.task_id is None:
        return
    before = Run.objects.filter(task_id=run.task_id, created_at__lt=run.created_at)
    yield from _of_runs(before.exclude(pk=run.pk))


def _of_runs(runs: QuerySet[Run]) -> Iterator[Observed]:
    """Yield what the newest runs observed."""
    for earlier in runs.order_by("-created_at", "-id")[:RUNS]:
        yield from _of_session(earlier)
        yield from _of_journal(list(earlier.steps.order_by("index")))


def _of_session(run: Run) -> Iterator[Observed]:
    """Yield what a host's action observed."""
    result = run.result if isinstance(run.result, Mapping) else {}
    page = result.get("page")
    if isinstance(page, Mapping):
        yield result.get("tabId"), page, False
    elif run.inputs.get("action") == OBSERVE.name and isinstance(result.get("result"), Mapping):
        is_continued = run.inputs.get("args", {}).get("from") is not None
        yield result.get("tabId"), result["result"], is_continued


def _of_journal(journal: Sequence[EndedStep]) -> Iterator[Observed]:
    """Yield what an agent observed."""
    for entry in reversed(journal):
        output, kind = entry.output or {}, entry.input.get("kind")
        if kind == PAGE and "observation" in output:
            tab = output.get("newTab", entry.input)["tabId"]
            yield tab, output["observation"], False
        elif kind == CALL and entry.input.get("tool") == OBSERVE.name and output.get("ok"):
            args, result = entry.input["args"], output.get("result")
            if isinstance(result, Mapping):
                yield args.get("tabId"), result, args.get("from") is not None
