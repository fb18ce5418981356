"""Runs and artifacts as MCP resources, read with the same selectors as the tools.

    continuity://runs/{runId}                              the run as JSON
    continuity://runs/{runId}/events{?after}               its events as JSON, one page
    continuity://artifacts/{artifactId}{?offset}           its bytes, one chunk

Where there is more than one result holds, a second item names the URI of the next part. Resource
subscriptions are not supported; `subscribe_task_run_events` waits for changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import mcp_types as types
import orjson
from django.conf import settings

from artifacts.chunks import is_text, read_chunk
from artifacts.selectors import artifact_briefs_of
from decisions.foundation.errors import InvalidInput
from decisions.identity.principals import Principal
from mcp_server.protocol.run_answers import concise_run, fenced_events
from runners.untrusted_text import fence_quotes
from runs.queries import runs as queries_runs
from runs.queries.run_lists import list_runs

RECENT = 20  # runs in resources/list, each with its first artifacts
JSON = "application/json"
_RUN = re.compile(r"continuity://runs/([\w-]{1,64})")
_EVENTS = re.compile(r"continuity://runs/([\w-]{1,64})/events(?:\?after=(\d{1,15}))?")
_ARTIFACT = re.compile(r"continuity://artifacts/([\w-]{1,64})(?:\?offset=(\d{1,15}))?")

Contents = list[types.TextResourceContents | types.BlobResourceContents]

TEMPLATES = (
    types.ResourceTemplate(
        name="run",
        title="A run",
        uri_template="continuity://runs/{runId}",
        mime_type=JSON,
        description="The run as it is now: status, progress, and its result once it ended.",
    ),
    types.ResourceTemplate(
        name="run_events",
        title="A run's events",
        mime_type=JSON,
        uri_template="continuity://runs/{runId}/events{?after}",
        description="The run's events in order, those after seq `after`.",
    ),
    types.ResourceTemplate(
        name="artifact",
        title="An artifact",
        uri_template="continuity://artifacts/{artifactId}{?offset}",
        description="An artifact of a run, from byte `offset` on.",
    ),
)


def list_recent(*, principal: Principal) -> list[types.Resource]:
    """Return the newest runs and, if the caller may read artifacts, the first artifacts of each.

    Raises:
        Forbidden: The caller may not read runs.
    """
    runs = list_runs(principal=principal, limit=RECENT)["runs"]
    listed = [_run(run) for run in runs]
    if "artifacts:read" in principal.scopes:
        ids = [run["runId"] for run in runs]
        listed += [_artifact(each) for each in artifact_briefs_of(principal=principal, run_ids=ids)]
    return listed


def _run(run: Mapping[str, Any]) -> types.Resource:
    summary = run.get("resultSummary") or (run["error"] or {}).get("message") or ""
    return types.Resource(
        uri=f"continuity://runs/{run['runId']}",
        name=run["runId"],
        title=f"{run.get('subject') or run['templateId']}: {run['status']}",
        description=fence_quotes(str(summary)[:300]) or None,
        mime_type=JSON,
        annotations=_modified(run["updatedAt"]),
    )


def _artifact(artifact: Mapping[str, Any]) -> types.Resource:
    return types.Resource(
        uri=f"continuity://artifacts/{artifact['artifactId']}",
        name=artifact["artifactId"],
        title=artifact["name"],
        description=f"{artifact['kind']} of {artifact['runId']}",
        mime_type=artifact["mimeType"],
        size=artifact["sizeBytes"],
        annotations=_modified(artifact["createdAt"]),
    )


def _modified(at_ms: int) -> types.Annotations:
    at = datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    return types.Annotations(last_modified=at.isoformat(timespec="milliseconds"))


def read(*, principal: Principal, uri: str) -> Contents:
    """Return the contents of a resource: at most MCP_ANSWER_BYTES, and where there is more the URI
    of the next part.

    Raises:
        InvalidInput: The URI matches no template.
        RunNotFound, ArtifactNotFound, ArtifactExpired, Forbidden: By the selectors.
    """
    if found := _RUN.fullmatch(uri):
        run = queries_runs.get_run(principal=principal, run_id=found[1])
        return [_json(uri, concise_run(run))]
    if found := _EVENTS.fullmatch(uri):
        return _read_events(principal, uri, found[1], int(found[2] or 0))
    if found := _ARTIFACT.fullmatch(uri):
        return _read_artifact(principal, uri, found[1], int(found[2] or 0))
    raise InvalidInput(
        f"There is no resource {uri[:200]!r}.",
        recovery="Use a URI from resources/list or one that fits a template of it.",
    )


def _read_events(principal: Principal, uri: str, run_id: str, after: int) -> Contents:
    page = queries_runs.list_events(
        principal=principal,
        run_id=run_id,
        after=after,
        limit=1000,
        max_bytes=settings.MCP_ANSWER_BYTES,
    )
    contents: Contents = [_json(uri, fenced_events(page))]
    if not page["terminal"]:
        more = f"continuity://runs/{run_id}/events?after={page['lastSeq']}"
        contents.append(_next_part(more, f"Later events: {more}"))
    return contents


def _read_artifact(principal: Principal, uri: str, artifact_id: str, offset: int) -> Contents:
    chunk = read_chunk(
        principal=principal,
        artifact_id=artifact_id,
        offset=offset,
        limit=settings.MCP_ANSWER_BYTES,
    )
    mime_type, data = chunk["mimeType"], chunk["data"]
    contents: Contents = [
        types.TextResourceContents(uri=uri, mime_type=mime_type, text=data)
        if is_text(mime_type)
        else types.BlobResourceContents(uri=uri, mime_type=mime_type, blob=data)
    ]
    if not chunk["complete"]:
        end = offset + chunk["length"]
        more = f"continuity://artifacts/{artifact_id}?offset={end}"
        text = f"Bytes {offset} to {end} of {chunk['totalSize']}. Next: {more}"
        contents.append(_next_part(more, text))
    return contents


def _json(uri: str, value: Mapping[str, Any]) -> types.TextResourceContents:
    return types.TextResourceContents(uri=uri, mime_type=JSON, text=orjson.dumps(value).decode())


def _next_part(uri: str, text: str) -> types.TextResourceContents:
    """Return the item that names the URI of the next part."""
    return types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
