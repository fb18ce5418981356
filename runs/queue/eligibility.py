"""Eligibility: the runs that this worker may claim, by template and template version.

CONTINUITY_WORKER_TEMPLATES limits a worker to some templates. While workers of two versions run
side by side, a worker claims no run whose template has a higher major version than its own: the run
may have steps that it does not know.
"""

from __future__ import annotations

import orjson
from django.conf import settings

from runs.task_templates.base import TaskTemplate
from runs.task_templates.registry import list_templates

# Whether this worker serves a run. `replace` leaves the digits at the beginning of the version.
SERVED = """
    template_id || ' ' || replace(template_version, ltrim(template_version, '0123456789'), '')
    IN (SELECT key FROM json_each(%(served)s))"""
# The waiting runs that the worker `worker` may claim; of those that no worker is limited to,
# `of_any`. The first line is the condition of the index run_waiting.
CLAIMABLE = f"""
    SELECT id, workspace_id, status, created_at FROM runs_run run
    WHERE ready AND lease_owner IS NULL AND status IN ('queued', 'running')
      AND (%(of_any)s OR {SERVED})
      AND (pinned_worker IS NULL OR pinned_worker NOT IN (
           SELECT id FROM runs_worker WHERE lost_at IS NULL AND id <> %(worker)s))
      -- Its named session is used by no other run and open in no other live worker.
      AND (owns_session OR NOT EXISTS (
           SELECT 1 FROM runs_run other WHERE other.session_id = run.session_id
             AND NOT other.owns_session AND other.status = 'running' AND other.id <> run.id))
      AND (owns_session OR NOT EXISTS (
           SELECT 1 FROM runners_browsersession session WHERE session.id = run.session_id
             AND session.worker_id IN (
                 SELECT id FROM runs_worker WHERE lost_at IS NULL AND id <> %(worker)s)))"""  # noqa: S608  (only constants of this module)


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


def served_versions() -> str:
    """Return the parameter `served` of SERVED: a JSON object whose keys are the templates that this
    worker serves, each with each major version, as in "call_tools 1".
    """
    return orjson.dumps(
        {
            f"{template.template_id} {major}": 1
            for template in served_templates()
            for major in range(int(template.version.partition(".")[0]) + 1)
        }
    ).decode()
