"""Eligibility: the runs that this worker may claim, by template and template version.

CONTINUITY_WORKER_TEMPLATES limits a worker to some templates. While workers of two versions run
side by side, a worker claims no run whose template has a higher major version than its own: the run
may have steps that it does not know.
"""

from __future__ import annotations

from collections import defaultdict

from django.conf import settings

from runs.task_templates.base import TaskTemplate
from runs.task_templates.registry import list_templates


def serves_some_only() -> bool:
    """Return whether this worker is limited to some templates."""
    return bool(settings.WORKER_TEMPLATES)


def served_templates() -> list[TaskTemplate]:
    """Return the templates whose runs this worker claims: those that CONTINUITY_WORKER_TEMPLATES
    names, or all but those that it names with a leading minus.
    """
    named = set(settings.WORKER_TEMPLATES)
    excluded = {name[1:] for name in named if name.startswith("-")}
    only = {name for name in named if not name.startswith("-")}
    return [
        template
        for template in list_templates()
        if template.template_id not in excluded and (not only or template.template_id in only)
    ]


def unknown_template_names() -> list[str]:
    """Return the names in CONTINUITY_WORKER_TEMPLATES that no installed template has."""
    known = {template.template_id for template in list_templates()}
    return sorted(name for name in settings.WORKER_TEMPLATES if name.removeprefix("-") not in known)


def served_sql() -> tuple[str, list[str]]:
    """Return an SQL condition on runs that this worker may claim, and its parameters."""
    parts, params = [], []
    for major, ids in _by_major().items():
        versions = " OR ".join(["template_version LIKE %s"] * (major + 1))
        parts.append(f"template_id IN ({', '.join(['%s'] * len(ids))}) AND ({versions})")
        params += [*ids, *(f"{number}.%" for number in range(major + 1))]
    return " OR ".join(parts) or "1 = 0", params


def _by_major() -> dict[int, list[str]]:
    by_major: dict[int, list[str]] = defaultdict(list)
    for template in served_templates():
        by_major[int(template.version.partition(".")[0])].append(template.template_id)
    return by_major
