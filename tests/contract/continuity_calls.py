"""Send the Continuity calls of rows of bad inputs over MCP and REST and return the answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from tests.contract.bad_inputs import encode
from tests.contract.mcp_host import Host, error_in_s2
from tests.support.rest.rest import continuity_refusal

Answer = tuple[str, dict[str, Any]]  # the error code or OK; the answer
SendCall = Callable[[str, Any], Answer]
USER = "/api/v1/user/{user_id}"
# Call → method, path, names of the query parameters.
CALLS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "continuity_chat": ("POST", "/api/v1/chat", ()),
    "continuity_confirm_decision": ("POST", "/api/v1/decision/{decision_id}/confirm", ()),
    "continuity_report_outcome": ("POST", "/api/v1/decision/{decision_id}/outcome", ("user_id",)),
    "continuity_get_state": ("GET", f"{USER}/state", ()),
    "continuity_list_objects": ("GET", f"{USER}/objects", ("type", "limit")),
    "continuity_put_shell": ("POST", f"{USER}/objects/shell", ()),
    "continuity_put_success_path": ("POST", f"{USER}/objects/success-path", ()),
}


def reason_not_sendable_over_rest(tool: str, arguments: dict[str, Any]) -> str | None:
    """Return why a call cannot be sent over HTTP, or None."""
    _, path, _ = CALLS[tool]
    named = [arguments.get(n) for n in ("user_id", "decision_id") if f"{{{n}}}" in path]
    if any(value is None or (isinstance(value, str) and "/" in value) for value in named):
        return "a path parameter is present and contains no slash"
    if arguments.get("user_id") in (".", ".."):
        return "clients remove dot segments from paths"
    return None


def over_mcp(host: Host) -> SendCall:
    """Return a function that sends calls over MCP."""

    def send_call(tool: str, arguments: Any) -> Answer:
        answer = host.call(tool, encode(arguments))
        if answer["result"]["isError"]:
            error = error_in_s2(answer)
            return error["code"], error
        return "OK", answer["result"]["structuredContent"]

    return send_call


def over_rest(api: httpx.Client) -> SendCall:
    """Return a function that sends calls over REST."""

    def send_call(tool: str, arguments: Any) -> Answer:
        response = api.request(**request_of(tool, arguments))
        if response.is_success:
            return "OK", response.json()
        problem = continuity_refusal(response, response.status_code)
        return problem["code"], problem

    return send_call


def request_of(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a call as the arguments of `httpx.Client.request`."""
    method, path, in_query = CALLS[tool]
    rest, headers = dict(arguments), {}
    for name in ("user_id", "decision_id"):
        if f"{{{name}}}" in path:
            value = json.loads(encode(rest.pop(name)))
            path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
    if "if_match" in rest:
        headers["If-Match"] = rest.pop("if_match")
    query = rest if method == "GET" else {n: rest.pop(n) for n in in_query if n in rest}
    url = f"{path}?{urlencode(query, doseq=True)}" if query else path
    if method == "GET":
        return {"method": method, "url": url}
    headers["Content-Type"] = "application/json"
    return {"method": method, "url": url, "content": encode(rest), "headers": headers}
