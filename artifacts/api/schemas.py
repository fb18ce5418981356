"""JSON Schemas of artifacts and uploads; `get_artifact` as in S0, the same for MCP and REST."""

from __future__ import annotations

from artifacts.chunks import CHUNK_MAX
from decisions.foundation.validation.json_schema import COUNT, ID, TEXT, Schema, closed

GET_ARTIFACT_INPUT: Schema = closed(
    {
        "artifactId": ID,
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
        "artifactId": ID,
        "mimeType": TEXT,
        "totalSize": COUNT,
        "offset": COUNT,
        "length": COUNT,
        "data": TEXT,
        "complete": {"type": "boolean"},
    }
)
ARTIFACT: Schema = closed(
    {
        "artifactId": ID,
        "runId": {**TEXT, "description": "Empty for an upload."},
        "kind": TEXT,
        "name": TEXT,
        "mimeType": TEXT,
        "sizeBytes": COUNT,
        "sha256": TEXT,
        "createdAt": COUNT,
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
        "uploadId": ID,
        "method": {"const": "PUT"},
        "url": TEXT,
        "headers": {"type": "object", "additionalProperties": TEXT},
        "expiresAt": COUNT,
    }
)
UPLOAD_ID_INPUT: Schema = closed({"uploadId": ID})
