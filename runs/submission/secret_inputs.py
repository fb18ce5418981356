"""Secret inputs: masked in the run's inputs, sealed in a row of their own, given to the steps that
need them, and deleted after the last of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.db.models import Exists, OuterRef

from decisions.foundation.presentation.visible_text import secret_named
from decisions.foundation.security.masking import MASK, Masker
from decisions.foundation.security.sealed_columns import seal_column, unseal_column
from runs.models import ACTIVE, Run, RunSecret
from runs.task_templates.base import StepPlan, TaskTemplate


@dataclass(frozen=True)
class Secrets:
    """The secret inputs of a run by dotted path (`credentials.password`).

    Attributes:
        last_step: the index of the last step that gets them.
    """

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    last_step: int = -1

    def of_step(self, index: int) -> Mapping[str, str]:
        """Return the secrets for a step; none after `last_step`."""
        return self.values if index <= self.last_step else {}

    def masker(self, *more: str) -> Masker:
        """Return a masker of the secret values, and of `more`, for everything the run writes."""
        return Masker([*self.values.values(), *more])


def split_secrets(
    template: TaskTemplate, inputs: Mapping[str, Any]
) -> tuple[Mapping[str, Any], dict[str, str]]:
    """Return the inputs with `***` in place of their secrets, and the secrets by dotted path."""
    secrets: dict[str, str] = {}
    masked: Any = inputs
    for path in template.secret_paths(inputs):
        value = _value_at(inputs, path)
        if isinstance(value, str):
            secrets[".".join(map(str, path))] = value
            masked = _replace_at(masked, path, MASK)
    return masked, secrets


def name_secrets(template: TaskTemplate, masked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return masked inputs with their secrets by name, for a person who decides on a submit."""
    named = masked
    for path in template.secret_paths(masked):
        if isinstance(_value_at(masked, path), str):
            named = _replace_at(named, path, secret_named(".".join(map(str, path))))
    return named


def _value_at(value: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        value = value[part]
    return value


def _replace_at(value: Any, path: tuple[str | int, ...], new: str) -> Any:
    """Return a copy of the value with `new` at the path."""
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(value, list):
        return [
            _replace_at(item, rest, new) if index == first else item
            for index, item in enumerate(value)
        ]
    return {
        key: _replace_at(item, rest, new) if key == first else item for key, item in value.items()
    }


def sealed_row(run_id: str, secrets: Mapping[str, str], plan: list[StepPlan]) -> RunSecret:
    """Return the unsaved row of a run's secrets.

    They are needed up to the last step that has `needs_secrets`; if none has, up to the last step.
    """
    needing = [index for index, step in enumerate(plan) if step.needs_secrets]
    last_step = needing[-1] if needing else len(plan) - 1
    row = RunSecret(run_id=run_id, last_step=last_step)
    row.sealed = seal_column(row, "sealed", orjson.dumps(secrets))
    return row


def read_secrets(run: Run) -> Secrets:
    """Return a run's secrets; empty if it had none or they were deleted.

    Raises:
        ValueError: They were sealed with a key that is not configured any more, or altered.
    """
    row = RunSecret.objects.filter(run_id=run.id).first() if run.holds_secrets else None
    if row is None:
        return Secrets()
    return Secrets(orjson.loads(unseal_column(row, "sealed")), row.last_step)


def delete_leftover_secrets() -> int:
    """Delete the secrets of runs that have ended; return how many. Commits."""
    active = Run.objects.filter(id=OuterRef("run_id"), status__in=ACTIVE)
    deleted, _ = RunSecret.objects.filter(~Exists(active)).delete()
    return deleted
