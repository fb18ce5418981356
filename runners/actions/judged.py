"""The element of a page that a call uses, as policy and people judge it before the call is made.

A reference is resolved once, into an element (`node`) and the facts about it: role, name, what it
submits and where, its link, and the addresses of its frame and of the page. The confirmation of a
call is bound to them, and the page compares them again immediately before the input.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field, StrictStr

from runners.actions.catalogue import CLICK, DRAG, PRESS_KEY, SELECT, TYPE, UPLOAD
from runners.tools.base import Closed, ExpectedElement, Reference

CHANGED = "changed"  # details.reason: the element is not as it was judged
SUBMIT_FORM, CLICK_ELEMENT, FILL_FIELD = "submit_form", "click_element", "fill_field"
ACTIVATING_KEYS = frozenset({"Enter", "Space"})  # with any modifier
MASKED_QUERY = "?***"
LOCATE_MS, FIELD_LOCATE_MS = 2000, 4000
Way = Literal["click", "enter", "set"]
Purpose = Literal["clickable", "field", "keys", "point"]
_LIKE = {
    CLICK.name: {CLICK_ELEMENT},
    DRAG.name: {CLICK_ELEMENT},
    UPLOAD.name: {CLICK_ELEMENT},
    TYPE.name: {FILL_FIELD},
    SELECT.name: {FILL_FIELD},
}


class SubmittedForm(Closed):
    """What submits a form, to where, and the fields and values that it sends."""

    by: StrictStr
    method: StrictStr
    action: StrictStr
    sent: StrictStr


class ElementFacts(Closed):
    """The facts that a call is judged by.

    Attributes:
        submits: the forms that the call may submit.
        sends: Enter in a field that has no form: scripts may send what was written.
        link, frame, page: whole addresses, without fragments.
    """

    role: StrictStr
    name: StrictStr
    text: StrictStr
    submits: tuple[SubmittedForm, ...]
    sends: bool
    link: StrictStr
    frame: StrictStr
    page: StrictStr


class DropElement(Closed):
    """The element that something is dropped on."""

    node: StrictStr
    line: StrictStr


class JudgedElement(Closed):
    """What a page says of the element that a call uses.

    Attributes:
        node: its name; no element of another document has it.
        line: its line, as an observation has it.
        stable: the facts, without counts and clocks that may change while a person decides.
        to: the element that it is dropped on.
    """

    outcome: Literal["judged"]
    node: StrictStr = Field(min_length=1)
    line: StrictStr
    facts: ElementFacts
    stable: ElementFacts
    title: StrictStr
    is_secret: bool = Field(alias="isSecret")
    to: DropElement | None = None

    @property
    def basis(self) -> str:
        """What a confirmation is bound to, as canonical JSON; addresses are whole in it."""
        to = self.to.node if self.to else None
        return json.dumps([self.node, to, self.stable.model_dump()], sort_keys=True)

    @property
    def submits(self) -> bool:
        """Whether the call may submit a form, or send what is in a field."""
        return bool(self.facts.submits) or self.facts.sends

    def shown(self) -> dict[str, str]:
        """Return what a person sees of the element, without queries of addresses."""
        facts = self.facts
        title = self.title.strip()[:100] or "without a title"
        fields = {"page": f"{title}, {without_query(facts.page)}", "element": self.line}
        if self.to:
            fields["toElement"] = self.to.line
        if facts.submits:
            fields["submits"] = "; ".join(_submitted_text(one) for one in facts.submits)
        if sent := "; ".join(one.sent for one in facts.submits if one.sent):
            fields["sent"] = sent
        if facts.link:
            fields["link"] = without_query(facts.link)
        if facts.frame != facts.page:
            fields["frame"] = without_query(facts.frame)
        return fields


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """Which element a page is to judge.

    Attributes:
        tab_id: of a browser action; None: the run's page.
        locator: None: the field that has the focus, or the submit button of the last filled form.
        way: what is done with the element.
        to: a reference of the element that it is dropped on.
        point: in pixels of the last picture.
        references: what names the element and that of `to`, in the call's arguments.
    """

    tab_id: int | None
    locator: Mapping[str, Any] | None
    purpose: Purpose
    way: Way
    locate_ms: int
    to: Mapping[str, Any] | None = None
    point: tuple[float, float] | None = None
    will_submit: bool = False
    references: tuple[Reference, Reference] = ((None, None), (None, None))


def is_judged(tool: str) -> bool:
    """Return whether calls of a tool use one element of a page, which can be judged before."""
    return tool in _LIKE or tool in (PRESS_KEY.name, CLICK_ELEMENT, FILL_FIELD, SUBMIT_FORM)


def covered_tools(
    tool: str, args: Mapping[str, Any], judged: JudgedElement | None
) -> frozenset[str]:
    """Return the other tools that a call does the same as: policy rules on them restrict it.

    Args:
        judged: None where the page was not looked at: what may submit counts as if it did.
    """
    names = set(always_covered_tools(tool))
    if tool == PRESS_KEY.name and _activates(args):
        names.add(CLICK_ELEMENT)
    if may_submit(tool, args, judged):
        names.add(SUBMIT_FORM)
    return frozenset(names - {tool})


def always_covered_tools(tool: str) -> frozenset[str]:
    """Return the other tools that each call of a tool does the same as."""
    return frozenset(_LIKE.get(tool, ()))


def sometimes_covered_tools(tool: str) -> frozenset[str]:
    """Return the further tools that some calls do the same as, by their arguments and the page."""
    found = covered_tools(tool, {"key": "Enter", "submit": True}, None)
    return found - always_covered_tools(tool)


def may_submit(tool: str, args: Mapping[str, Any], judged: JudgedElement | None) -> bool:
    """Return whether a call may submit a form: the one rule on that, for every tool."""
    if tool == SUBMIT_FORM or (tool == TYPE.name and args.get("submit")):
        return True
    if tool in (TYPE.name, SELECT.name, FILL_FIELD) or not is_judged(tool):
        return False
    if tool == PRESS_KEY.name and not _activates(args):
        return False
    return judged is None or judged.submits


def _activates(args: Mapping[str, Any]) -> bool:
    return str(args.get("key")).rpartition("+")[2] in ACTIVATING_KEYS


def judge_request(tool: str, args: Mapping[str, Any]) -> JudgeRequest | None:
    """Return which element a browser action uses; None for one that uses none."""
    if tool not in _LIKE and tool != PRESS_KEY.name:
        return None
    purpose, way = _manner(tool, args)
    own, to = _reference(args, "clickId", "xpath"), _reference(args, "toClickId", "toXpath")
    point = (float(args["x"]), float(args["y"])) if args.get("x") is not None else None
    is_named = own != (None, None) or tool != PRESS_KEY.name
    return JudgeRequest(
        tab_id=int(args["tabId"]),
        locator=_pointed(own) if is_named and point is None else None,
        purpose="point" if point else purpose,
        way=way,
        locate_ms=FIELD_LOCATE_MS if tool in (TYPE.name, UPLOAD.name) else LOCATE_MS,
        to=None if to == (None, None) else _pointed(to),
        point=point,
        references=(own, to),
    )


def _manner(tool: str, args: Mapping[str, Any]) -> tuple[Purpose, Way]:
    if tool == TYPE.name:
        return "field", "enter" if args.get("submit") else "set"
    if tool == SELECT.name:
        return "field", "set"
    if tool == PRESS_KEY.name:
        key = str(args.get("key")).rpartition("+")[2]
        return "keys", "enter" if key == "Enter" else "click" if key == "Space" else "set"
    return "clickable", "click"


def _reference(args: Mapping[str, Any], click_id: str, xpath: str) -> Reference:
    number = args.get(click_id)
    return (None if number is None else int(number)), args.get(xpath)


def _pointed(reference: Reference) -> dict[str, Any]:
    click_id, xpath = reference
    return {
        "mode": "pointed",
        "click_id": click_id,
        "xpath": xpath,
        "node": None,
        "compares": False,
    }


def expected_element(
    request: JudgeRequest, judged: JudgedElement, *, compares: bool
) -> ExpectedElement:
    """Return the element that the call is bound to."""
    own, to = request.references
    nodes = {own: judged.node} | ({to: judged.to.node} if judged.to else {})
    return ExpectedElement(judged.node, nodes, compares)


def without_query(address: str) -> str:
    """Return an address for people: without fragment, and with a mask in place of its query."""
    parts = urlsplit(address)
    shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    return shown + (MASKED_QUERY if parts.query else "")


def _submitted_text(form: SubmittedForm) -> str:
    return f"{form.method.upper()} {without_query(form.action)}"


def describe_change(changed: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what differs in an element, before and after, without queries of addresses."""
    return {str(name): [_fact_text(one) for one in pair] for name, pair in changed.items()}


def _fact_text(fact: Any) -> str:
    if isinstance(fact, list):
        known = (one for one in fact if isinstance(one, Mapping))
        return "; ".join(
            f"{str(one.get('method', '')).upper()} {without_query(str(one.get('action', '')))} "
            f"{one.get('sent', '')}".strip()
            for one in known
        )
    text = str(fact)
    is_address = text.startswith(("http:", "https:", "about:", "file:", "data:"))
    return (without_query(text) if is_address else text)[:300]
