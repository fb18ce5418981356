"""Send the rows of bad inputs as REST calls."""

from __future__ import annotations

import gzip
import json
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from tests.contract.bad_inputs import FOLDER, Row, encode, raw_line, rows

REST_FILE = FOLDER / "bad_inputs_rest.jsonl"
JSON = {"Content-Type": "application/json"}
RUN = "/api/v1/runs/{runId}"
# Call → method, path; fields that are not in the path go to the query, or to a POST's body.
CALLS = {
    "run_task_template": ("POST", "/api/v1/runs"),
    "list_task_runs": ("GET", "/api/v1/runs"),
    "get_task_run": ("GET", RUN),
    "wait_task_run": ("GET", f"{RUN}/wait"),
    "subscribe_task_run_events": ("GET", f"{RUN}/events"),
    "cancel_task_run": ("POST", f"{RUN}/cancel"),
    "answer_task_run": ("POST", f"{RUN}/answer"),
    "get_artifact": ("GET", "/api/v1/artifacts/{artifactId}"),
    "list_task_templates": ("GET", "/api/v1/templates"),
    "get_runtime_profile": ("GET", "/api/v1/runtime/profile"),
}


def rest_rows(surface: str) -> list[Row]:
    """Return the project's rows for a REST surface, and the shared rows if present."""
    numbered_lines = enumerate(REST_FILE.read_text().splitlines(), 1)
    own_rows = [Row(**json.loads(line), source=f"rest:{number}") for number, line in numbered_lines]
    return [row for row in own_rows if row.surface == surface] + rows(surface)


def reason_not_sendable(row: Row) -> str | None:
    """Return why a row cannot be sent over HTTP, or None: paths and queries are text."""
    method, path = CALLS[row.tool]
    named = [name for name in ("runId", "artifactId") if f"{{{name}}}" in path]
    if not all(_fits_a_path(row.input.get(name)) for name in named):
        return "an id in a path is text, is present, and contains no slash"
    query = [value for name, value in row.input.items() if name not in named]
    if method == "GET" and not all(map(_fits_a_query, query)):
        return "a query has no quoted numbers, lists of one, or fractions of zero"
    return None


def _fits_a_path(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, str) and "/" not in value)


def _fits_a_query(value: Any) -> bool:
    if isinstance(value, dict):
        return "$raw_number" not in value
    if isinstance(value, list):
        return len(value) != 1
    return not (isinstance(value, str) and value.isdigit())


def request_of(tool: str, arguments: Any) -> dict[str, Any]:
    """Return a call as the arguments of `httpx.Client.request`."""
    method, path = CALLS[tool]
    rest = dict(arguments)
    for name in ("runId", "artifactId"):
        if f"{{{name}}}" in path:
            value = json.loads(encode(rest.pop(name)))
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
    if method == "POST":
        content = encode(rest)
        return {"method": method, "url": path, "content": content, "headers": JSON}
    texts = {name: _query_text(json.loads(encode(value))) for name, value in rest.items()}
    return {"method": method, "url": f"{path}?{urlencode(texts, doseq=True)}"}


def _query_text(value: Any) -> Any:
    return value if isinstance(value, str | list) else json.dumps(value)


def send(client: httpx.Client, row: Row) -> httpx.Response:
    """Send a row's call."""
    if "$headers" in row.input:
        bomb = gzip.compress(bytes(10 * 1024 * 1024))
        headers = {**JSON, **row.input["$headers"]}
        return client.post("/api/v1/runs", content=bomb, headers=headers)
    raw = raw_line(row.input)
    if raw is not None:
        return client.post("/api/v1/runs", content=raw, headers=JSON)
    return client.request(**request_of(row.tool, row.input))


def send_raw_request(client: httpx.Client, row: Row) -> httpx.Response:
    """Send the call of a project row that contains its own method and address."""
    method, _, url = row.call.partition(" ")
    content = row.input.get("body", "").encode() or None
    return client.request(method, url, content=content, headers=row.input.get("headers", {}))
