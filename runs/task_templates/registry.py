"""The registry of templates: built-in ones and those of CONTINUITY_TEMPLATE_MODULES, by id."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from django.conf import settings

from runs.task_templates import builtin
from runs.task_templates.base import TaskTemplate

_found: dict[str, TaskTemplate] = {}


def template(made: type[TaskTemplate]) -> type[TaskTemplate]:
    """Register a template class under its id.

    Raises:
        ValueError: The id is taken.
    """
    if made.template_id in _found:
        raise ValueError(f"template {made.template_id} is registered twice")
    _found[made.template_id] = made()
    return made


@cache
def _templates() -> dict[str, TaskTemplate]:
    for module in pkgutil.iter_modules(builtin.__path__):
        importlib.import_module(f"{builtin.__name__}.{module.name}")
    for name in settings.CONTINUITY_TEMPLATE_MODULES:
        importlib.import_module(name)
    return _found


def get_template(template_id: str) -> TaskTemplate | None:
    """Return the template of this id, or None; a lookup, never a path."""
    return _templates().get(template_id)


def list_templates() -> list[TaskTemplate]:
    """Return every template, by id."""
    return [_templates()[template_id] for template_id in sorted(_templates())]
