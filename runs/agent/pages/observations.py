"""The observations of pages that a model gets: the newest of each open tab whole, at the end of the
messages; of each older one a line, beside the result of its call.

So each request begins with the one before it, up to the observations, which change with every turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from runners.actions.catalogue import OBSERVE, TASK_STOP
from runners.actions.untrusted_page import fence_result
from runners.llm.base import Image, Message
from runs.agent.journal_view import CALL, PAGE, Journal, JournalEntry

SHOWN_TABS = 5  # those that were observed last
SHOWN_BELOW = "at the end, as long as it is the newest of its tab"
# Fields of an observation that its line does not have.
_LEFT_OUT = frozenset({"text", "viewport", "scroll", "elements", "cut", "consoleErrors"})


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tab showed; `picture` is the artifactId of its numbered screenshot, or ""."""

    tab_id: int
    fields: Mapping[str, Any]
    picture: str = ""


def line_of(page: Mapping[str, Any]) -> dict[str, Any]:
    """Return an observation without what is only in the whole one."""
    line = {name: value for name, value in page.items() if name not in _LEFT_OUT}
    return {**line, "text": SHOWN_BELOW} if isinstance(page.get("text"), str) else line


def newest_observations(journal: Journal) -> list[Observation]:
    """Return the newest observation of each tab that is still open, the newest last."""
    newest: dict[int, Observation] = {}
    for entry in journal:
        if _closes_tabs(entry):
            newest.clear()
        elif (observation := _observation_of(entry)) is not None:
            before = newest.pop(observation.tab_id, None)
            if before is not None and not observation.picture and _only_reads(entry):
                observation = replace(observation, picture=before.picture)
            newest[observation.tab_id] = observation
    return list(newest.values())[-SHOWN_TABS:]


def observation_message(observations: list[Observation], picture: Image | None) -> list[Message]:
    """Return the message with the observations, none if there are none.

    Args:
        picture: of the page that was observed last.
    """
    if not observations:
        return []
    texts = [_whole(observation) for observation in observations]
    images = () if picture is None else (picture,)
    return [Message("user", "\n\n".join(texts), images=images, is_temporary=True)]


def _whole(observation: Observation) -> str:
    fields = {"tabId": observation.tab_id, **fence_result(OBSERVE.name, observation.fields)}
    text, cut = fields.pop("text", ""), fields.pop("cut", None)
    whole = f"The newest observation of this tab: {orjson.dumps(fields).decode()}\n{text}"
    if cut is None:
        return whole
    return f"{whole}\n{cut['left']} left: browser_observe with from: {cut['next']}"


def _closes_tabs(entry: JournalEntry) -> bool:
    is_stop = entry.input["kind"] == CALL and entry.input["tool"] == TASK_STOP.name
    return is_stop and bool((entry.output or {}).get("ok"))


def _only_reads(entry: JournalEntry) -> bool:
    """Return whether an entry is a call of the model that observes: the page is as it was."""
    return bool(entry.input["kind"] == CALL)


def _observation_of(entry: JournalEntry) -> Observation | None:
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
