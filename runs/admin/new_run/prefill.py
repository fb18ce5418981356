"""The inputs of an earlier run, or of a refused form, as a form may show them: without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decisions.foundation.security.logs import redact
from decisions.foundation.security.masking import MASK
from runs.models import Run
from runs.task_templates.base import TaskTemplate

# What a run gets for itself when it is submitted.
_OWN = frozenset({"taskId"})


def inputs_of_run(template: TaskTemplate, run: Run) -> dict[str, Any]:
    """Return the inputs of a run of the template, without its secrets and its task."""
    inputs = {name: value for name, value in run.inputs.items() if name not in _OWN}
    shown: dict[str, Any] = without_secrets(template, inputs)
    return shown


def without_secrets(template: TaskTemplate, inputs: Mapping[str, Any]) -> Any:
    """Return inputs without secret and masked values, and without texts that contain a password
    (`https://me:password@host/`). The inputs may be invalid.
    """
    try:
        secrets = template.secret_paths(inputs)
    except (AttributeError, IndexError, KeyError, TypeError):  # the inputs are invalid
        secrets = None
    return _without(inputs, secrets, ())


def _without(
    value: Any, secrets: set[tuple[str | int, ...]] | None, path: tuple[str | int, ...]
) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _without(item, secrets, (*path, name))
            for name, item in value.items()
            if _is_shown(item, secrets, (*path, name))
        }
    if isinstance(value, list):
        # Items keep their places, because errors name them by number.
        return [
            _without(item, secrets, (*path, number))
            if _is_shown(item, secrets, (*path, number))
            else ""
            for number, item in enumerate(value)
        ]
    return value


def _is_shown(
    value: Any, secrets: set[tuple[str | int, ...]] | None, path: tuple[str | int, ...]
) -> bool:
    if not isinstance(value, str):
        return True
    is_secret = secrets is None or path in secrets
    return not (is_secret or value == MASK or redact(value) != value)
