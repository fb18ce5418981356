"""`read_page_content`: the parts of a kept result that a reader asks for, instead of the whole."""

from __future__ import annotations

from typing import Any

import orjson

from artifacts.chunks import is_text
from artifacts.selectors import artifact_ids_of, open_content
from decisions.errors import InvalidInput
from decisions.identity.principals import Principal
from runs.queries.page_content import ContentSelection, pages_of, select_content
from runs.queries.visibility import visible_run

MAX_BYTES = 64 * 1024 * 1024  # of an artifact that is read whole for this
MAX_CHARS = 30_000
_ID: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 64}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_TEXT: dict[str, Any] = {"type": "string"}


def _closed(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


READ_PAGE_CONTENT_INPUT = _closed(
    {
        "artifactId": {**_ID, "description": "A result (or any text) that a run kept."},
        "runId": {**_ID, "description": "Instead of artifactId: the run whose result to read."},
        "item": {**_COUNT, "description": "Only this page, counted from 0 as in the result."},
        "sections": {
            "type": "array",
            "minItems": 1,
            "maxItems": 50,
            "items": {
                "type": ["string", "integer"],
                "minLength": 1,
                "maxLength": 200,
                "minimum": 0,
            },
            "description": "Only sections whose heading has one of these words, or their indexes.",
        },
        "grep": {
            "type": "string",
            "minLength": 1,
            "maxLength": 500,
            "description": "RE2 pattern, (?i) for any case: only what is around its matches.",
        },
        "outline": {"type": "boolean", "description": "Headings and lengths alone."},
        "maxChars": {"type": "integer", "minimum": 100, "maximum": MAX_CHARS, "default": 8000},
        "offset": {
            "type": "integer",
            "minimum": 0,
            "maximum": 2**53 - 1,
            "default": 0,
            "description": "nextOffset of the answer before, with the same selection.",
        },
    },
    [],
)
READ_PAGE_CONTENT_OUTPUT = _closed(
    {
        "artifactId": _ID,
        "totalPages": _COUNT,
        "pages": {
            "type": "array",
            "items": _closed(
                {
                    "item": _COUNT,
                    "url": _TEXT,
                    "title": _TEXT,
                    "sections": {
                        "type": "array",
                        "items": _closed(
                            {
                                "section": _COUNT,
                                "heading": _TEXT,
                                "level": _COUNT,
                                "characters": _COUNT,
                                "start": _COUNT,
                                "text": _TEXT,
                            },
                            ["section", "heading", "level", "characters"],
                        ),
                    },
                },
                ["item", "url", "title", "sections"],
            ),
        },
        "matches": {
            "type": "array",
            "items": _closed(
                {"item": _COUNT, "section": _COUNT, "heading": _TEXT, "at": _COUNT, "text": _TEXT},
                ["item", "section", "heading", "at", "text"],
            ),
        },
        "nextOffset": {"type": ["integer", "null"]},
    },
    ["artifactId", "totalPages", "pages", "matches", "nextOffset"],
)


def read_page_content(*, principal: Principal, call: dict[str, Any]) -> dict[str, Any]:
    """Answer a valid READ_PAGE_CONTENT_INPUT; the whole result stays where it is.

    Raises:
        InvalidInput: Not exactly one of artifactId and runId, nothing kept yet, no text, too
            large, no such item, or a pattern that RE2 does not take.
        RunNotFound, ArtifactNotFound, ArtifactExpired: As the selectors.
    """
    asked = dict(call)
    artifact_id, run_id = asked.pop("artifactId", None), asked.pop("runId", None)
    if (artifact_id is None) == (run_id is None):
        raise InvalidInput("artifactId: give it, or runId, and not both.")
    if run_id is not None:
        artifact_id = _result_of(principal, run_id)
    names = {"maxChars": "max_chars"}
    wish = ContentSelection(**{names.get(name, name): value for name, value in asked.items()})
    value = _value(principal, str(artifact_id))
    return {"artifactId": artifact_id, **select_content(pages_of(value), wish)}


def _result_of(principal: Principal, run_id: str) -> str:
    run = visible_run(principal, run_id)
    kept = artifact_ids_of([run.id]).get(run.id)
    if not kept:
        raise InvalidInput(f"runId: this run has kept nothing to read; it is {run.status}.")
    return kept[0]


def _value(principal: Principal, artifact_id: str) -> Any:
    """Return what the artifact holds: a result with pages, or else its text."""
    row, file = open_content(principal=principal, artifact_id=artifact_id)
    with file:
        if not is_text(row.mime_type):
            raise InvalidInput(f"artifactId: this is {row.mime_type}, which has no text to read.")
        if row.size_bytes > MAX_BYTES:
            told = f"artifactId: {row.size_bytes} bytes are too many; use get_artifact."
            raise InvalidInput(told)
        raw = file.read()
    text = raw.decode("utf-8", errors="replace")
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return text
    return value if pages_of(value) else text
