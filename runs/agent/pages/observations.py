"""The observations of pages that a model gets: the newest of each open tab whole, at the end of the
messages; of each older one a line, beside the result of its call.

So each request begins with the one before it, up to the observations, which change with every turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from runners.actions.catalogue import CLOSE_TAB, OBSERVE, TASK_START, TASK_STOP
from runners.llm.base import Image, Message
from runners.untrusted_text import fence_page, split_result
from runs.agent.journal_view import CALL, PAGE, Journal
from runs.steps import StepView

SHOWN_TABS = 5  # at most: those that were observed last
SHARE = 3  # the part of the messages that several observations may take is a third
SHOWN_BELOW = "at the end, as long as it is the newest of its tab"
# Fields of an observation that its line does not have.
_LEFT_OUT = frozenset({"text", "viewport", "scroll", "elements", "cut", "consoleErrors"})


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tab showed; `picture` is the artifactId of its numbered screenshot, or "". `is_left`:
    the tab shows another page now, or is closed.
    """

    tab_id: int
    fields: Mapping[str, Any]
    picture: str = ""
    is_left: bool = False


def line_of(page: Mapping[str, Any]) -> dict[str, Any]:
    """Return an observation without what is only in the whole one."""
    line = {name: value for name, value in page.items() if name not in _LEFT_OUT}
    return {**line, "shown": SHOWN_BELOW} if isinstance(page.get("text"), str) else line


def newest_observations(journal: Journal) -> list[Observation]:
    """Return the newest observation of each open tab, and of each address that the last turn left
    again; the newest last.
    """
    newest: dict[int, Observation] = {}
    of_turn: dict[tuple[int, Any], Observation] = {}
    for entry in journal:
        for tab_id in _closed_by(entry, newest):
            newest.pop(tab_id, None)
        if (observation := _observation_of(entry)) is None:
            continue
        before = newest.pop(observation.tab_id, None)
        if before is not None and not observation.picture and _only_reads(entry):
            observation = replace(observation, picture=before.picture)
        newest[observation.tab_id] = observation
        if entry.input["turn"] == journal[-1].input["turn"]:
            key = (observation.tab_id, observation.fields.get("url"))
            of_turn.pop(key, None)
            of_turn[key] = observation
    current = list(newest.values())
    left = [replace(one, is_left=True) for one in of_turn.values() if one not in current]
    return [*left, *current][-SHOWN_TABS:]


def observation_message(
    observations: list[Observation], picture: Image | None, *, size: int
) -> list[Message]:
    """Return the message with the observations, none if there are none.

    The newest is always there; older ones are left out, the oldest first, if together they would
    take more than a third of `size`, the bytes of all messages.

    Args:
        picture: of the page that was observed last.
    """
    if not observations:
        return []
    texts = [_whole(observation) for observation in observations]
    while len(texts) > 1 and sum(len(text.encode()) for text in texts) > size // SHARE:
        del texts[0]
    images = () if picture is None else (picture,)
    return [Message("user", "\n\n".join(texts), images=images, is_temporary=True)]


def _whole(observation: Observation) -> str:
    fields = {"tabId": observation.tab_id, **observation.fields}
    if observation.is_left:
        fields["isLeft"] = True
    text, cut = fields.pop("text", ""), fields.pop("cut", None)
    own, lines = split_result(fields)
    page = fence_page("\n".join([*lines, text]), str(fields.get("url", "")))
    whole = f"The newest observation of this tab: {orjson.dumps(own).decode()}\n{page}"
    if cut is None:
        return whole
    return f"{whole}\n{cut['left']} left: browser_observe with from: {cut['next']}"


def _closed_by(entry: StepView, tabs: Iterable[int]) -> list[int]:
    """Return the tabs that a step closed or found closed."""
    output = entry.output or {}
    if entry.input["kind"] == PAGE:
        return [int(entry.input["tabId"])] if "newTab" in output else []
    if entry.input["kind"] != CALL:
        return []
    tool, args = entry.input["tool"], entry.input["args"]
    if "newTab" in output:
        return list(tabs)
    if not output.get("ok"):
        return []
    if tool == CLOSE_TAB.name:
        return [int(args["tabId"])]
    is_start = tool == TASK_START.name and not args.get("reuseExistingTab")
    return list(tabs) if is_start or tool == TASK_STOP.name else []


def _only_reads(entry: StepView) -> bool:
    """Return whether an entry is a call of the model that observes: the page is as it was."""
    return bool(entry.input["kind"] == CALL)


def _observation_of(entry: StepView) -> Observation | None:
    output = entry.output or {}
    if entry.input["kind"] == PAGE and "observation" in output:
        tab = output.get("newTab", entry.input)["tabId"]
        return Observation(int(tab), output["observation"], str(output.get("picture", "")))
    if entry.input["kind"] != CALL or entry.input["tool"] != OBSERVE.name or not output.get("ok"):
        return None
    result = output.get("result")
    if not isinstance(result, Mapping) or "text" not in result:
        return None
    return Observation(int(entry.input["args"]["tabId"]), result)
