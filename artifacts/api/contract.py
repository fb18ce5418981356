"""JSON Schemas of artifacts and uploads; `get_artifact` as in S0, the same for MCP and REST."""

from __future__ import annotations

from artifacts.chunks import CHUNK_MAX
from decisions.validation.json_schema import Schema, closed

_ID: Schema = {"type": "string", "minLength": 1, "maxLength": 64}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_TEXT: Schema = {"type": "string"}

GET_ARTIFACT_INPUT: Schema = closed(
    {
        "artifactId": _ID,
        "offset": {
            "type": "integer",
            "minimum": 0,
            "maximum": 2**53 - 1,
            "default": 0,
            "description": "In raw bytes; the next chunk starts at offset + length.",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": CHUNK_MAX, "default": CHUNK_MAX},
    },
    ["artifactId"],
)
ARTIFACT_CHUNK: Schema = closed(
    {
        "artifactId": _ID,
        "mimeType": _TEXT,
        "totalSize": _COUNT,
        "offset": _COUNT,
        "length": _COUNT,
        "data": _TEXT,
        "complete": {"type": "boolean"},
    }
)
ARTIFACT: Schema = closed(
    {
        "artifactId": _ID,
        "runId": {**_TEXT, "description": "Empty for an upload."},
        "kind": _TEXT,
        "name": _TEXT,
        "mimeType": _TEXT,
        "sizeBytes": _COUNT,
        "sha256": _TEXT,
        "createdAt": _COUNT,
        "expiresAt": {"type": ["integer", "null"]},
        "expired": {"type": "boolean"},
    }
)
ARTIFACT_LIST: Schema = closed({"artifacts": {"type": "array", "items": ARTIFACT}})
START_UPLOAD_INPUT: Schema = closed(
    {
        "name": {"type": "string", "minLength": 1, "maxLength": 255},
        "mimeType": {
            "type": "string",
            "maxLength": 128,
            "pattern": r"^[A-Za-z0-9.+_-]+/[A-Za-z0-9.+_-]+(; ?charset=[A-Za-z0-9_-]+)?$",
        },
        "sizeBytes": {"type": "integer", "minimum": 1, "maximum": 2**53 - 1},
        "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    }
)
UPLOAD: Schema = closed(
    {
        "uploadId": _ID,
        "method": {"const": "PUT"},
        "url": _TEXT,
        "headers": {"type": "object", "additionalProperties": _TEXT},
        "expiresAt": _COUNT,
    }
)
UPLOAD_ID_INPUT: Schema = closed({"uploadId": _ID})
