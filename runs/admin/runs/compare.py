"""Two runs side by side: their times, inputs, steps and results, with what differs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher
from typing import Any

from django.db.models import Q
from django.db.models.fields.json import KT

from decisions.foundation.presentation.formatting import duration, pretty_json, shorten
from decisions.foundation.security.logs import redact
from runners.actions.typed_text import hide_typed_text
from runs.admin.runs.columns import elapsed_ms, state_pill
from runs.admin.runs.conversation import usage_figures
from runs.admin.runs.result import result_context
from runs.admin.runs.waits import list_waits, waited_ms
from runs.models import Run, RunStep

STEPS = 200  # of each run
OTHERS = 20  # runs to choose from
RELATED = 5
VALUE = 400  # characters of an input's value
_MISSING = object()


@dataclass(frozen=True, slots=True)
class StepSide:
    """A step of one run: its status, its error code and how long it took."""

    number: int
    tone: str
    status: str
    code: str
    took_ms: float | None

    @property
    def took(self) -> str:
        """How long it took, as text."""
        return "" if self.took_ms is None else duration(self.took_ms)


@dataclass(frozen=True, slots=True)
class Pair:
    """The steps of the same name in two runs; one may be absent."""

    name: str
    first: StepSide | None
    second: StepSide | None

    @property
    def differs(self) -> bool:
        """Whether a run lacks the step, or it ended otherwise."""
        if self.first is None or self.second is None:
            return True
        return (self.first.tone, self.first.code) != (self.second.tone, self.second.code)

    @property
    def change(self) -> str:
        """How much longer or shorter it took in the second run; empty below a tenth of it."""
        if self.first is None or self.second is None:
            return ""
        before, after = self.first.took_ms, self.second.took_ms
        if before is None or after is None or abs(after - before) < max(50, before / 10):
            return ""
        return f"{'+' if after > before else '−'}{duration(abs(after - before))}"


def other_runs(run: Run) -> list[Run]:
    """Return the runs that a run is usually compared with, the best first: its origin, its retry,
    those that were submitted again from it, then the newest of its template in its workspace.
    """
    origins = [run_id for run_id in (run.retry_of, run.again_of) if run_id]
    related = Q(retry_of=run.id) | Q(again_of=run.id) | Q(id__in=origins)
    rows = Run.objects.filter(related, workspace_id=run.workspace_id)
    retries = list(rows.order_by("created_at", "id")[:RELATED])
    same = Run.objects.filter(workspace_id=run.workspace_id, template_id=run.template_id)
    newest = same.exclude(id__in=[run.id, *(one.id for one in retries)])
    return [*retries, *newest.order_by("-created_at", "-id")[:OTHERS]]


def comparison(first: Run, second: Run) -> dict[str, Any]:
    """Return the template context of two runs."""
    now = datetime.now(UTC)
    pairs = list(_pairs(_steps(first), _steps(second)))
    inputs = list(_different(*map(hide_typed_text, (first.inputs, second.inputs))))
    return {
        "sides": [_side(first, now), _side(second, now)],
        "inputs": inputs,
        "pairs": pairs,
        "differing": sum(pair.differs for pair in pairs),
        "is_cut": max(first.total_steps, second.total_steps) > STEPS,
    }


def _side(run: Run, now: datetime) -> dict[str, Any]:
    waits = list_waits(run)
    waited, elapsed = waited_ms(waits, now), elapsed_ms(run, now)
    return {
        "run": run,
        "state": state_pill(run),
        "worked": duration(None if elapsed is None else max(0.0, elapsed - waited)),
        "waited": duration(waited) if waits else "",
        "usage": usage_figures(run),
        "error": run.error,
        "result": result_context(run.result, run.error),
    }


def _steps(run: Run) -> list[RunStep]:
    rows = RunStep.objects.filter(run_id=run.id).order_by("index")
    rows = rows.defer("input", "output", "paused")
    return list(rows.annotate(failed_call=KT("output__error__code"))[:STEPS])


def _pairs(first: Sequence[RunStep], second: Sequence[RunStep]) -> Iterator[Pair]:
    """Yield the steps in order; those of the same name stand beside each other."""
    names = [step.name for step in first], [step.name for step in second]
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
        if kind == "equal":
            for one, other in zip(first[i1:i2], second[j1:j2], strict=True):
                yield Pair(one.name, _step_side(one), _step_side(other))
            continue
        yield from (Pair(step.name, _step_side(step), None) for step in first[i1:i2])
        yield from (Pair(step.name, None, _step_side(step)) for step in second[j1:j2])


def _step_side(step: Any) -> StepSide:
    took = None
    if step.started_at and step.ended_at:
        took = max(0.0, (step.ended_at - step.started_at).total_seconds() * 1000)
    code = step.failed_call or (step.error or {}).get("errorCode", "")
    return StepSide(step.index + 1, "failed" if code else step.status, step.status, code, took)


def _different(first: Any, second: Any, path: str = "") -> Iterator[dict[str, str]]:
    """Yield the paths at which the inputs differ, with both values."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for name in dict.fromkeys([*first, *second]):
            pair = first.get(name, _MISSING), second.get(name, _MISSING)
            yield from _different(*pair, f"{path}.{name}" if path else str(name))
    elif first != second:
        yield {"path": path, "first": _value(first), "second": _value(second)}


def _value(value: Any) -> str:
    if value is _MISSING:
        return ""
    if isinstance(value, str):
        return shorten(redact(value), VALUE)
    if isinstance(value, list | dict):
        return pretty_json(value, limit=VALUE * 3, items=20)
    return json.dumps(value)
