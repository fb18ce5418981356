"""Scripted models: one follows intents, one does nothing, one always says done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tests.support.agent.model_server import ModelRequest
from tests.support.agent.model_turns import Call, Turn, complete
from tests.trials.agent_bench.solver.intents import Answer, Intent
from tests.trials.agent_bench.solver.observation import goal_of
from tests.trials.agent_bench.solver.view import ModelView, NotOnPage

BYTES_PER_TOKEN = 4


class ScriptedModel:
    """Answer the requests of runs: each run's goal names the intents that are followed."""

    def __init__(self) -> None:
        self.intents: dict[str, Sequence[Intent]] = {}
        self._running: dict[str, tuple[ModelView, Iterator[list[Call]]]] = {}
        self._calls = 0

    def learn(self, goal: str, intents: Sequence[Intent]) -> None:
        """Set the intents for a goal."""
        self.intents[goal] = intents

    def __call__(self, request: ModelRequest) -> Turn:
        """Return the next turn."""
        messages = request.body["messages"]
        asked = goal_of(messages)
        goal = next((one for one in self.intents if one in asked), None)
        if goal is None:
            return _sized(complete("I do not understand the goal."), request)
        if goal not in self._running:
            view = ModelView()
            self._running[goal] = (view, _turns(self.intents[goal], view))
        view, turns = self._running[goal]
        view.read(messages)
        try:
            calls = next(turns)
        except NotOnPage as missing:
            calls = [Call("attempt_completion", {"result": f"I did not find {missing}."})]
        except StopIteration:
            calls = [Call("attempt_completion", {"result": "Done."})]
        return _sized(Turn("", [self._numbered(call) for call in calls]), request)

    def _numbered(self, call: Call) -> Call:
        self._calls += 1
        return replace(call, id=f"call_{self._calls}")


def _turns(intents: Sequence[Intent], view: ModelView) -> Iterator[list[Call]]:
    for intent in intents:
        yield from intent.turns(view)
    if not isinstance(intents[-1], Answer):
        yield from Answer().turns(view)


def _sized(turn: Turn, request: ModelRequest) -> Turn:
    """Report as many tokens as the request and the reply have, by their bytes."""
    sent = len(json.dumps(request.body, ensure_ascii=False).encode()) // BYTES_PER_TOKEN
    replied = sum(len(call.text) for call in turn.calls) // BYTES_PER_TOKEN
    return replace(turn, tokens=(sent, replied + 1))


def say_done(request: ModelRequest) -> Turn:
    """Say done at once, whatever the goal is."""
    return _sized(complete("Done. The goal was reached."), request)


def do_nothing(request: ModelRequest) -> Turn:
    """Reply without a call and without an answer."""
    return _sized(Turn("I cannot do this."), request)


MODELS: dict[str, Callable[[], Callable[[ModelRequest], Turn]]] = {
    "scripted": ScriptedModel,
    "done": lambda: say_done,
    "nothing": lambda: do_nothing,
}
