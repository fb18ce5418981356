"""A scripted model that obeys every order in the texts that it reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from tests.support.agent.agent_goals import observations
from tests.support.agent.model_server import ModelRequest
from tests.support.agent.model_turns import Call, Turn, complete

_ORDER = re.compile(r"Call (\S+) with\s+(?=\{)")
_TEXT_READ_BYTES = 4000  # maximum length of the text read in an address


def orders_in(text: str) -> list[Call]:
    """Return the tool calls that a text orders; truncated orders are skipped."""
    found = []
    for match in _ORDER.finditer(text):
        with suppress(ValueError):
            args, _ = json.JSONDecoder().raw_decode(text, match.end())
            found.append(Call(match[1], args))
    return found


class ObeyingModel:
    """A model that makes its first call, then each call that it read an order for, one per turn.

    It completes the task when no order is left.

    Attributes:
        obeyed: the orders that it obeyed, with their original arguments.
    """

    def __init__(self, first: Call) -> None:
        self._first, self.obeyed = first, list[Call]()
        self._pages: list[str] = []  # that it was shown, which later requests do not repeat

    def __call__(self, request: ModelRequest) -> Turn:
        """Return the next turn."""
        results = [
            json.loads(item["content"])
            for item in request.body["messages"]
            if item["role"] == "tool"
        ]
        if not results:
            return Turn("I read it.", [self._first])
        self._pages += [page["text"] for page in observations(request)]
        texts = [*_strings(results), *self._pages]
        for order in (order for text in texts for order in orders_in(text)):
            if order not in self.obeyed:
                self.obeyed.append(order)
                args = _with_values(order.arguments, "\n".join(texts), _tab(results))
                return Turn("I do as I am told.", [Call(order.name, args, f"o{len(self.obeyed)}")])
        return complete("All of it is done.")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _tab(results: list[dict[str, Any]]) -> int:
    tabs = [item["result"]["tabId"] for item in results if "tabId" in item.get("result", ())]
    return int(tabs[-1]) if tabs else 0


def _with_values(value: Any, text_read: str, tab: int) -> Any:
    if isinstance(value, dict):
        return {name: _with_values(item, text_read, tab) for name, item in value.items()}
    if value == "TAB":
        return tab
    return (
        value.replace("TEXT_READ", quote(text_read)[:_TEXT_READ_BYTES])
        if isinstance(value, str)
        else value
    )
