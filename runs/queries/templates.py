"""Read the templates that a caller can run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from decisions.identity.principals import Principal
from runs.task_templates.registry import find_template, list_templates

BRIEF_LIST_BYTES = 4096


def list_task_templates(
    *, principal: Principal, template_id: str | None = None, brief: bool = False
) -> dict[str, Any]:
    """Return every template with its schemas, or the one of `template_id`.

    Args:
        brief: only {templateId, description, exampleInputs} of each: the first sentence, and the
            first example unless the list would exceed BRIEF_LIST_BYTES with it.

    Raises:
        TemplateNotFound: There is no template of this id.
    """
    principal.require("runs:read")
    chosen = (
        [template for template in list_templates() if template.is_listed]
        if template_id is None
        else [find_template(template_id)]
    )
    templates = [template.describe() for template in chosen]
    return {
        "templates": _brief_entries(templates) if brief else templates,
        "hasMore": False,
        "nextCursor": None,
    }


def _brief_entries(templates: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    entries = [
        {
            "templateId": template["templateId"],
            "description": template["description"].partition(". ")[0].rstrip(".") + ".",
            "exampleInputs": template["exampleInputs"][:1],
        }
        for template in templates
    ]
    longest_first = sorted(entries, key=lambda one: len(orjson.dumps(one["exampleInputs"])))[::-1]
    for entry in longest_first:
        if len(orjson.dumps(entries)) <= BRIEF_LIST_BYTES:
            break
        del entry["exampleInputs"]
    return entries
