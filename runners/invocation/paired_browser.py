"""Perform browser actions in a paired browser: one implementation for all of them.

The action is sent with its parameters, and the answer is validated by the action's result model, so
both kinds of browser return the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field, ValidationError

from artifacts.browser_files import ResultUpload, open_result_upload, share_file, take_result
from decisions.foundation.errors import Refused
from decisions.foundation.infra.ids import new_id
from decisions.foundation.validation.model_errors import first_error
from decisions.foundation.validation.storable import storable
from runners.actions import errors as failures
from runners.actions.catalogue import (
    ACTIONS,
    CLOSE_TAB,
    GET_HTML,
    JUDGE,
    LIST_TABS,
    READABILITY,
    SCREENSHOT,
    TASK_START,
    TASK_STOP,
    UPLOAD,
    Action,
)
from runners.actions.judged import CHANGED, JudgedElement, JudgeRequest
from runners.actions.own_pages import check_shown_page, page_to_open
from runners.actions.parameters import BrowserUpload, TaskStart
from runners.actions.readability import is_inline
from runners.actions.uploaded_files import read_files
from runners.errors import (
    AddressNotAllowed,
    ElementChanged,
    ElementNotFound,
    InvalidTarget,
    NavigationFailed,
    NavigationTimeout,
    PageCrashed,
    ToolFailed,
    ToolTimeout,
)
from runners.invocation.paired_tabs import close_private_tab
from runners.network.address import check_address
from runners.paired_browser.choice import PairedBrowser
from runners.paired_browser.dispatch import (
    BrowserReply,
    SentAction,
    collect_reply,
    perform_in_browser,
)
from runners.paired_browser.errors import BrowserAckTimeout, BrowserExecTimeout, BrowserOffline
from runners.tools.base import Closed, Effect, ToolCall, ToolContext, ToolResult

_KINDS: tuple[type[ToolFailed], ...] = (
    failures.InvalidTaskTab,
    failures.TaskTabClosed,
    failures.OwnPage,
    failures.CdpUnavailable,
    failures.CdpPermissionDenied,
    failures.PagePrepFailed,
    failures.ReadabilityTooLarge,
    failures.ArtifactUploadFailed,
    BrowserOffline,
    BrowserAckTimeout,
    BrowserExecTimeout,
    AddressNotAllowed,
    ElementNotFound,
    InvalidTarget,
    NavigationTimeout,
    NavigationFailed,
    PageCrashed,
)
_BY_CODE = {kind.code: kind for kind in _KINDS}
CLOSE_S = 5.0  # to close a tab that shows a page which the caller may not read
COLLECT_S = 10.0  # for the answer to an action that a lost worker sent
_WITHOUT_PAGE = frozenset({TASK_START.name, TASK_STOP.name, LIST_TABS.name, CLOSE_TAB.name})
_UNREACHABLE = "Check that the address is right, and that your paired browser can reach it."
_TASK_BUSY = "TASK_BUSY"  # another action of the task is still running in the browser


@dataclass(frozen=True, slots=True)
class _StoredAs:
    """As what the artifact of an action's result is stored, by its media type."""

    kind: str
    names: Mapping[str, str]


class _SentBytes(Closed):
    """What a browser says of the bytes that it sent."""

    size_bytes: int = Field(ge=0, alias="sizeBytes")
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    mime_type: str = Field(max_length=128, alias="mimeType")


_PICTURES = {"image/jpeg": "screenshot.jpg", "image/png": "screenshot.png"}
_STORED = {
    SCREENSHOT.name: _StoredAs("screenshot", _PICTURES),
    GET_HTML.name: _StoredAs("file", {"text/html": "page.html"}),
    READABILITY.name: _StoredAs("file", {"text/markdown": "page.md"}),
}


async def invoke_in_paired_browser(
    call: ToolCall, ctx: ToolContext, browser: PairedBrowser
) -> ToolResult:
    """Perform a browser action in a paired browser and return its result."""
    action = ACTIONS[call.name]
    try:
        return ToolResult(ok=True, output=await _perform(action, call.args, ctx, browser))
    except (ToolFailed, Refused) as failed:
        error = failed.as_dict()
        return ToolResult(ok=False, error=error)


async def _perform(
    action: Action, args: Mapping[str, Any], ctx: ToolContext, browser: PairedBrowser
) -> Mapping[str, Any]:
    params = _checked(action, args, ctx)
    limit_ms = min(action.timeout_ms, int((ctx.deadline - time.monotonic()) * 1000))
    if limit_ms <= 0:
        message = f"{action.name} was not started: no time was left for it."
        raise ToolTimeout(message, details=_effect(action, "none"))
    upload = open_result_upload() if action.name in _STORED else None
    files = await _shared_files(args, ctx) if action.name == UPLOAD.name else ()
    sent = SentAction(
        action_id=browser.action_id,
        task_id=browser.task_id,
        client_id=browser.client_id,
        name=action.name,
        params=params,
        timeout_ms=limit_ms,
        upload=None if upload is None else upload.as_dict(),
        files=files,
        task_title=browser.task_title,
        expected_origin=browser.expected_origin,
        judged=_judged(ctx),
    )
    if ctx.trust != "local" and browser.expected_origin:
        check_address(browser.expected_origin, ctx.trust)
    reply = await _reply(action, sent, ctx, is_sent=browser.is_sent)
    try:
        _check_origins(action, reply, ctx)
        if reply.status == "error":
            raise _failure(action, reply.error or {})
        return await _output(action, reply, upload, ctx)
    except AddressNotAllowed as refused:
        if action.name == TASK_START.name or action.effect != Effect.READ:
            tab_id = params.get("tabId") or (reply.result or {}).get("tabId")
            seconds = min(CLOSE_S, ctx.seconds_left())
            closed = await close_private_tab(browser, tab_id, seconds=seconds)
            refused.details = {**refused.details, "tabClosed": closed}
        raise


def _judged(ctx: ToolContext) -> Mapping[str, Any] | None:
    """Return the element that the action was judged by, as the browser gets it."""
    if ctx.judged is None:
        return None
    others = [node for node in ctx.judged.nodes.values() if node != ctx.judged.node]
    to = {"toNode": others[0]} if others else {}
    return {"node": ctx.judged.node, "compares": ctx.judged.compares, **to}


async def judge_in_paired_browser(
    request: JudgeRequest, ctx: ToolContext, browser: PairedBrowser
) -> JudgedElement:
    """Return what a page of a paired browser says of the element that a call uses.

    Raises:
        ToolFailed: There is no such element, or no such page; details.effect is `none`.
    """
    point = request.point
    params = {
        "tabId": request.tab_id,
        "locator": request.locator,
        "purpose": request.purpose,
        "way": request.way,
        "locateMs": request.locate_ms,
        "to": request.to,
        "point": None if point is None else {"x": point[0], "y": point[1]},
    }
    sent = SentAction(
        action_id=f"{browser.action_id}.{new_id('judge_')}",
        task_id=browser.task_id,
        client_id=browser.client_id,
        name=JUDGE.name,
        params=params,
        timeout_ms=min(JUDGE.timeout_ms, max(1, int(ctx.seconds_left() * 1000))),
        task_title=browser.task_title,
    )
    reply = await _reply(JUDGE, sent, ctx, is_sent=False)
    _check_origins(JUDGE, reply, ctx)
    if reply.status == "error":
        raise _failure(JUDGE, reply.error or {})
    try:
        return JudgedElement.model_validate(storable(reply.result or {}))
    except ValidationError:
        raise _other_form(JUDGE, "it does not name the element") from None


def _checked(action: Action, args: Mapping[str, Any], ctx: ToolContext) -> dict[str, Any]:
    """Return the parameters as they are sent.

    Raises:
        ToolFailed: They are invalid, or the URL is one that this caller may not open.
    """
    try:
        model = action.parameters.model_validate(dict(args))
    except ValidationError as error:
        raise InvalidTarget(first_error(error)) from None
    if isinstance(model, TaskStart) and model.url is not None:
        model = model.model_copy(update={"url": page_to_open(model.url, ctx.trust)})
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def _shared_files(args: Mapping[str, Any], ctx: ToolContext) -> list[Mapping[str, Any]]:
    """Return the files of browser_upload with the addresses where the browser reads them."""
    wanted = BrowserUpload.model_validate(dict(args)).files
    return [
        {
            "fileName": file.name,
            "mediaType": file.media_type,
            "sizeBytes": len(file.data),
            "url": await asyncio.to_thread(share_file, file.data),
        }
        for file in await read_files(wanted, ctx)
    ]


async def _reply(
    action: Action, sent: SentAction, ctx: ToolContext, *, is_sent: bool
) -> BrowserReply:
    """Send the action and return the answer; with `is_sent` only collect the answer.

    Raises:
        ToolFailed: There is none; details.effect says whether the action may have had its effect.
    """
    try:
        async with asyncio.timeout(ctx.seconds_left()):
            if is_sent:
                return await _collected(action, sent)
            return await perform_in_browser(sent)
    except TimeoutError:
        message = f"{action.name} did not finish in the time that was left."
        raise ToolTimeout(message, details=_effect(action, "unknown")) from None
    except BrowserOffline as failed:
        failed.details = {"effect": "none", **failed.details}
        raise
    except (BrowserAckTimeout, BrowserExecTimeout) as failed:
        failed.details = {**_effect(action, "unknown"), **failed.details}
        raise


async def _collected(action: Action, sent: SentAction) -> BrowserReply:
    """Return the answer to an action that a lost worker sent; the action is not sent again.

    Raises:
        ToolFailed: There is none: whether the action had its effect is unknown.
    """
    reply = await collect_reply(sent.action_id, wait_s=COLLECT_S)
    if reply is None:
        raise ToolFailed(
            f"The worker was lost during {action.name}; whether it had its effect is unknown.",
            details={"effect": "unknown"},
        )
    return reply


def _effect(action: Action, effect: str) -> dict[str, Any]:
    return {} if action.effect == Effect.READ else {"effect": effect}


def _failure(action: Action, error: Mapping[str, Any]) -> ToolFailed:
    """Return the failure that the browser reported, as kind `browser` reports it."""
    code, message = str(error.get("code", "")), str(error.get("message", ""))[:2000]
    given = error.get("details")
    details = dict(storable(given)) if isinstance(given, Mapping) else {}
    kind = _BY_CODE.get(code)
    if kind is None:
        details = {"reason": code[:64] or "unknown", **_effect(action, "unknown"), **details}
        if code == _TASK_BUSY:
            details["effect"] = "none"
        return ToolFailed(message or f"The browser refused {action.name}.", details=details)
    if kind is failures.CdpUnavailable and details.get("effect") == "unknown":
        kind = failures.CdpLost
    if kind is ElementNotFound and details.get("reason") == CHANGED:
        kind = ElementChanged
    recovery = _UNREACHABLE if kind is NavigationFailed else None
    message = message or f"{action.name} failed in the browser."
    return kind(message, details=details, recovery=recovery)


async def _output(
    action: Action, reply: BrowserReply, upload: ResultUpload | None, ctx: ToolContext
) -> Mapping[str, Any]:
    """Return the output of a successful action, checked by the action's result model.

    Raises:
        ToolFailed: The result is not one of this action, its artifact cannot be stored, or it shows
            a page that agents must not act on or this caller may not read.
    """
    fields: dict[str, Any] = dict(storable(reply.result or {}))
    warnings = [*_texts(fields.pop("warnings", ())), *_texts(reply.warnings)]
    warnings += [f"Missing in the result: {name}." for name in _texts(reply.missing)]
    _check_page(fields.get("url"), ctx)
    if action.name == LIST_TABS.name:
        fields["tabs"] = _allowed_tabs(fields.get("tabs"), ctx)
    stored = fields.pop("upload", None)
    if stored is not None:
        fields["artifactId"] = await _stored_artifact(action, stored, upload, ctx)
    elif action.name == READABILITY.name:
        fields = await _fitted_text(fields, ctx)
    try:
        result = action.result.model_validate({**fields, "warnings": warnings})
    except ValidationError as wrong:
        raise _other_form(action, first_error(wrong)) from None
    return result.as_output()


def _other_form(action: Action, problem: str) -> ToolFailed:
    return ToolFailed(
        f"The browser answered {action.name} with a result of another form: {problem}"[:300],
        details={"reason": "shape", **_effect(action, "unknown")},
        recovery="Update the Continuity extension in the browser.",
    )


def _check_page(url: Any, ctx: ToolContext) -> None:
    """Check the address of the page that a result is about, as kind `browser` does.

    Raises:
        OwnPage, AddressNotAllowed: The agent may not act on it, or the caller may not read it.
    """
    if isinstance(url, str):
        check_shown_page(url, ctx.trust)


def _check_origins(action: Action, reply: BrowserReply, ctx: ToolContext) -> None:
    """Check the origins of the pages on which an action of a remote caller worked.

    Raises:
        AddressNotAllowed: The caller may not read one of them.
        ToolFailed: The browser does not say which pages the result is about.
    """
    if ctx.trust == "local":
        return
    try:
        for origin in reply.page_origins:
            if origin.startswith(("http:", "https:")):
                check_address(origin, ctx.trust)
    except ToolFailed as refused:
        refused.details = {**refused.details, **_effect(action, "unknown")}
        raise
    if reply.page_origins or reply.status == "error" or action.name in _WITHOUT_PAGE:
        return
    raise ToolFailed(
        f"The browser did not say which page {action.name} worked on.",
        details={"reason": "shape", **_effect(action, "unknown")},
        recovery="Update the Continuity extension in the browser; open a page with task_start.",
    )


def _allowed_tabs(tabs: Any, ctx: ToolContext) -> Any:
    """Return the tabs of a list without those whose page this caller may not read."""

    def is_allowed(tab: Any) -> bool:
        try:
            _check_page(tab.get("url") if isinstance(tab, Mapping) else None, ctx)
        except ToolFailed:
            return False
        return True

    return [tab for tab in tabs if is_allowed(tab)] if isinstance(tabs, list) else tabs


def _texts(given: Any) -> list[str]:
    values = given if isinstance(given, Sequence) and not isinstance(given, str) else ()
    return [storable(value)[:1000] for value in values if isinstance(value, str)][:50]


async def _stored_artifact(
    action: Action, stored: Any, upload: ResultUpload | None, ctx: ToolContext
) -> str:
    """Take the bytes that the browser sent, and store them as an artifact of the run.

    Raises:
        ArtifactUploadFailed: They are not as the result says, or cannot be stored.
    """
    try:
        sent = _SentBytes.model_validate(stored)
    except ValidationError:
        sent = None
    media_type = "" if sent is None else sent.mime_type.partition(";")[0].strip().lower()
    names = {} if upload is None else _STORED[action.name].names
    if sent is None or upload is None or media_type not in names:
        raise _upload_failed(action, "the browser sent a result that this action does not have")
    if action.name == READABILITY.name:
        is_inline(sent.size_bytes)  # raises for one that is too large
    try:
        data = await asyncio.to_thread(
            take_result, upload, size_bytes=sent.size_bytes, sha256=sent.sha256
        )
        return await ctx.save_artifact(
            data, name=names[media_type], mime_type=media_type, kind=_STORED[action.name].kind
        )
    except (Refused, OSError) as failed:
        reason = failed.message if isinstance(failed, Refused) else type(failed).__name__
        raise _upload_failed(action, reason) from None


def _upload_failed(action: Action, reason: str) -> failures.ArtifactUploadFailed:
    return failures.ArtifactUploadFailed(
        f"The result of {action.name} could not be stored: {reason}", details={"reason": reason}
    )


async def _fitted_text(fields: dict[str, Any], ctx: ToolContext) -> dict[str, Any]:
    """Return the text of a page as kind `browser` returns it: the markdown alone, a long one as an
    artifact.

    Raises:
        ReadabilityTooLarge: It exceeds the limit.
    """
    text = fields.pop("text", None)
    markdown = fields.get("markdown", text)
    if not isinstance(markdown, str):
        return fields
    data = markdown.encode()
    fields |= {"contentLengthBytes": len(data)}
    if is_inline(len(data)):
        return {**fields, "markdown": markdown}
    artifact_id = await ctx.save_artifact(data, name="page.md", mime_type="text/markdown")
    del fields["markdown"]
    return {**fields, "artifactId": artifact_id, "truncated": True}
