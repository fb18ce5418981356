"""Secret inputs: split off at submit, sealed in a row of their own, handed to the steps that need
them, gone with the last of those (mechanisms 11).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.db.models import Exists, OuterRef

from decisions.security.keys import seal, unseal
from decisions.security.masking import MASK, Masker
from runs.models import ACTIVE, Run, RunSecret
from runs.task_templates.base import StepPlan, TaskTemplate


@dataclass(frozen=True)
class Secrets:
    """The secret inputs of a run by their dotted path (`credentials.password`), never to be shown.

    Attributes:
        last_step: the last step that gets them.
    """

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    last_step: int = -1

    def of_step(self, index: int) -> Mapping[str, str]:
        """Return what a step gets."""
        return self.values if index <= self.last_step else {}

    def masker(self, *more: str) -> Masker:
        """Return what takes the values, and more, out of everything that the run says."""
        return Masker([*self.values.values(), *more])


def split_secrets(
    template: TaskTemplate, inputs: Mapping[str, Any]
) -> tuple[Mapping[str, Any], dict[str, str]]:
    """Return the inputs with `***` in place of their secrets, and the secrets by dotted path."""
    secrets: dict[str, str] = {}
    shown: Any = inputs
    for path in template.secret_paths(inputs):
        value = _at(inputs, path)
        if isinstance(value, str):
            secrets[".".join(map(str, path))] = value
            shown = _put(shown, path, MASK)
    return shown, secrets


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        value = value[part]
    return value


def _put(value: Any, path: tuple[str | int, ...], new: str) -> Any:
    """Return a copy of the value with another text at the path."""
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(value, list):
        return [_put(item, rest, new) if at == first else item for at, item in enumerate(value)]
    return {key: _put(item, rest, new) if key == first else item for key, item in value.items()}


def sealed_row(run_id: str, secrets: Mapping[str, str], plan: list[StepPlan]) -> RunSecret:
    """Return the unsaved row of a run's secrets; without a step that says so, the last one needs
    them.
    """
    needing = [index for index, step in enumerate(plan) if step.needs_secrets]
    last_step = needing[-1] if needing else len(plan) - 1
    return RunSecret(run_id=run_id, sealed=seal(orjson.dumps(secrets)), last_step=last_step)


def read_secrets(run: Run) -> Secrets:
    """Return what is left of a run's secrets.

    Raises:
        ValueError: Sealed under a key that is not configured any more, or altered.
    """
    row = RunSecret.objects.filter(run_id=run.id).first() if run.holds_secrets else None
    if row is None:
        return Secrets()
    return Secrets(orjson.loads(unseal(bytes(row.sealed))), row.last_step)


def delete_leftover_secrets() -> int:
    """Delete secrets of runs that have ended, however that came; return how many."""
    active = Run.objects.filter(id=OuterRef("run_id"), status__in=ACTIVE)
    deleted, _ = RunSecret.objects.filter(~Exists(active)).delete()
    return deleted
