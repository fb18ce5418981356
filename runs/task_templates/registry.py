"""The registry of templates: the built-in ones and those of CONTINUITY_TEMPLATE_MODULES, by id."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from django.conf import settings

from decisions.foundation.errors import TemplateNotFound
from runs.task_templates import builtin
from runs.task_templates.base import TaskTemplate

_registered: dict[str, TaskTemplate] = {}


def register(template_class: type[TaskTemplate]) -> type[TaskTemplate]:
    """Register a template class under its `template_id`; use it as a class decorator.

    Raises:
        ValueError: The id is taken.
    """
    template_id = template_class.template_id
    if template_id in _registered:
        raise ValueError(f"template {template_id} is registered twice")
    _registered[template_id] = template_class()
    return template_class


@cache
def _templates() -> dict[str, TaskTemplate]:
    for module in pkgutil.iter_modules(builtin.__path__):
        importlib.import_module(f"{builtin.__name__}.{module.name}")
    for name in settings.CONTINUITY_TEMPLATE_MODULES:
        importlib.import_module(name)
    return _registered


def get_template(template_id: str) -> TaskTemplate | None:
    """Return the template with this id, or None."""
    return _templates().get(template_id)


def find_template(template_id: str, *, is_listed: bool = True) -> TaskTemplate:
    """Return the template with this id, by default one that callers may run.

    Raises:
        TemplateNotFound: There is none.
    """
    template = get_template(template_id)
    if template is None or (is_listed and not template.is_listed):
        known = [template.template_id for template in list_templates() if template.is_listed]
        raise TemplateNotFound(
            f"There is no template {template_id[:64]!r}.", details={"templateIds": known}
        )
    return template


def list_templates() -> list[TaskTemplate]:
    """Return every template, ordered by id."""
    return [_templates()[template_id] for template_id in sorted(_templates())]
