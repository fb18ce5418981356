"""`read_page_content`: return parts of a stored result instead of the whole."""

from __future__ import annotations

from typing import Any

import orjson

from artifacts.chunks import is_text
from artifacts.selectors import artifact_ids_of, open_content
from decisions.foundation.errors import InvalidInput
from decisions.foundation.validation.json_schema import COUNT, ID, TEXT, closed
from decisions.identity.principals import Principal
from runs.queries.page_content import CONTEXT_MAX, ContentSelection, pages_of, select_content
from runs.queries.visibility import visible_run

MAX_BYTES = 64 * 1024 * 1024  # of an artifact; it is read whole
MAX_CHARS = 30_000

READ_PAGE_CONTENT_INPUT = closed(
    {
        "artifactId": {**ID, "description": "A stored result (or any text) of a run."},
        "runId": {**ID, "description": "Instead of artifactId: the run whose result to read."},
        "item": {**COUNT, "description": "Only this page, counted from 0 as in the result."},
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
            "description": "Only sections whose heading contains one of these texts, or whose index"
            " is listed.",
        },
        "grep": {
            "type": "string",
            "minLength": 1,
            "maxLength": 500,
            "description": "RE2 pattern, with (?i) case-insensitive: only its matches in context.",
        },
        "context": {
            "type": "integer",
            "minimum": 0,
            "maximum": CONTEXT_MAX,
            "description": "With grep: characters after a match, half as many before. Default: 400"
            " for one match, less for more: 120 (to 10), 60 (to 30), 20 (no headings).",
        },
        "onlyMatches": {
            "type": "boolean",
            "description": "With grep: only the text of its group (several: a list; none: the whole"
            " match), as found: {item: [text]}. Best for many matches; (?:a|b) is no group.",
        },
        "outline": {"type": "boolean", "description": "Only headings and lengths."},
        "maxChars": {"type": "integer", "minimum": 100, "maximum": MAX_CHARS, "default": 8000},
        "offset": {
            "type": "integer",
            "minimum": 0,
            "maximum": 2**53 - 1,
            "default": 0,
            "description": "nextOffset of the previous answer, with the same selection.",
        },
    },
    [],
)
READ_PAGE_CONTENT_OUTPUT = closed(
    {
        "totalPages": COUNT,
        "pages": {
            "type": "array",
            "items": closed(
                {
                    "item": COUNT,
                    "url": TEXT,
                    "title": TEXT,
                    "sections": {
                        "type": "array",
                        "items": closed(
                            {
                                "section": COUNT,
                                "heading": TEXT,
                                "level": COUNT,
                                "characters": COUNT,
                                "start": COUNT,
                                "text": TEXT,
                            },
                            ["section", "heading", "level"],
                        ),
                    },
                }
            ),
        },
        "matches": {
            "type": "array",
            "items": closed(
                {"item": COUNT, "section": COUNT, "heading": TEXT, "text": TEXT}, ["item", "text"]
            ),
        },
        "found": {"type": "object"},
        "nextOffset": COUNT,
    },
    ["totalPages"],
)


def read_page_content(*, principal: Principal, call: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a call that fits READ_PAGE_CONTENT_INPUT.

    Raises:
        InvalidInput: Not exactly one of artifactId and runId; or the run has no result yet, the
            artifact is no text or too large, there is no such item, or RE2 rejects the pattern.
        RunNotFound, ArtifactNotFound, ArtifactExpired: As the queries of runs and artifacts.
    """
    args = dict(call)
    artifact_id, run_id = args.pop("artifactId", None), args.pop("runId", None)
    if (artifact_id is None) == (run_id is None):
        raise InvalidInput("artifactId: give either artifactId or runId.")
    if run_id is not None:
        artifact_id = _result_of(principal, run_id)
    names = {"maxChars": "max_chars", "onlyMatches": "only_matches"}
    selection = ContentSelection(**{names.get(name, name): value for name, value in args.items()})
    value = _read_value(principal, str(artifact_id))
    return select_content(pages_of(value), selection)


def _result_of(principal: Principal, run_id: str) -> str:
    run = visible_run(principal, run_id)
    artifact_ids = artifact_ids_of([run.id]).get(run.id)
    if not artifact_ids:
        raise InvalidInput(f"runId: this run has no artifact to read; it is {run.status}.")
    return artifact_ids[0]


def _read_value(principal: Principal, artifact_id: str) -> Any:
    """Return the artifact's parsed result if it contains pages, else its text."""
    row, file = open_content(principal=principal, artifact_id=artifact_id)
    with file:
        if not is_text(row.mime_type):
            raise InvalidInput(f"artifactId: this is {row.mime_type}, which has no text to read.")
        if row.size_bytes > MAX_BYTES:
            raise InvalidInput(
                f"artifactId: {row.size_bytes} bytes, {MAX_BYTES} are allowed; use get_artifact."
            )
        raw = file.read()
    text = raw.decode("utf-8", errors="replace")
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return text
    return value if pages_of(value) else text
