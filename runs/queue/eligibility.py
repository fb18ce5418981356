"""Which runs a worker takes: of the templates that it has and serves, and of no newer version.

While a fleet is upgraded, workers of two versions run side by side. A run that was accepted by
newer code may have steps that older code does not know, and says so by the first number of its
template's version: it waits for a worker that has it. CONTINUITY_WORKER_TEMPLATES keeps workers for
some kinds of work.
"""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from operator import or_

from django.conf import settings
from django.db.models import Q

from runs.task_templates.base import TaskTemplate
from runs.task_templates.registry import list_templates


def serves_some_only() -> bool:
    """Tell whether this worker leaves some kinds of work to others."""
    return bool(settings.WORKER_TEMPLATES)


def served() -> list[TaskTemplate]:
    """Return the templates whose runs this process takes: all, those named, or all but those named
    with a minus.
    """
    named = set(settings.WORKER_TEMPLATES)
    but = {name[1:] for name in named if name.startswith("-")}
    only = {name for name in named if not name.startswith("-")}
    return [
        template
        for template in list_templates()
        if template.template_id not in but and (not only or template.template_id in only)
    ]


def unknown_names() -> list[str]:
    """Return the names in CONTINUITY_WORKER_TEMPLATES that are no template here."""
    known = {template.template_id for template in list_templates()}
    return sorted(name for name in settings.WORKER_TEMPLATES if name.removeprefix("-") not in known)


def served_sql() -> tuple[str, list[str]]:
    """Return the condition on a run's `template_id` and `template_version`, and its parameters."""
    parts, params = [], []
    for major, ids in _by_major().items():
        versions = " OR ".join(["template_version LIKE %s"] * (major + 1))
        parts.append(f"template_id IN ({', '.join(['%s'] * len(ids))}) AND ({versions})")
        params += [*ids, *(f"{number}.%" for number in range(major + 1))]
    return " OR ".join(parts) or "1 = 0", params


def served_q() -> Q:
    """Return the same condition for a query on runs."""
    parts = [
        Q(template_id__in=ids)
        & reduce(or_, (Q(template_version__startswith=f"{n}.") for n in range(major + 1)))
        for major, ids in _by_major().items()
    ]
    return reduce(or_, parts, Q(pk__in=[]))


def _by_major() -> dict[int, list[str]]:
    by_major: dict[int, list[str]] = defaultdict(list)
    for template in served():
        by_major[int(template.version.partition(".")[0])].append(template.template_id)
    return by_major
