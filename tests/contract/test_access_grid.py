"""Test who gets what: every REST call, tool, MCP tool, WebSocket and admin page, for each kind of
caller. What the product has and the tables below do not name fails.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import pytest
from django.apps import apps
from django.test import Client
from websockets.exceptions import InvalidStatus

from config import asgi
from decisions.foundation.infra.ids import new_id
from decisions.identity.principals import SCOPES, Principal, authenticate, create_token
from decisions.models import Token
from mcp_server import toolsets
from mcp_server.http.lazy_loading import PATHS
from mcp_server.protocol.resources import TEMPLATES
from mcp_server.tools.registry import load_toolsets
from runners.actions.catalogue import ACTIONS
from runners.paired_browser.pairing.registry import pair_browser_of
from runners.paired_browser.pairing.tickets import create_ticket
from runners.tools.registry import list_tools
from runs.models import Webhook, WebhookDelivery
from runs.websockets.live import END
from tests.contract.mcp_http_host import HEADERS
from tests.contract.test_rest_routes import (
    BROWSER,
    FOUND,
    HOOK,
    RUN,
    SCOPED,
    SESSION,
    STAFF,
    TARGET,
    TASK,
    USER,
)
from tests.support.decisions.continuity import (
    HARMLESS,
    SHELL,
    SUCCESS_PATH,
    create_decision_with_outcome,
)
from tests.support.rest.rest import bearer
from tests.support.runners.protocol_browser import ABOUT
from tests.support.runs.task_socket import open_task_socket

SECRET = "only-for-the-owner"  # in the owner's rows; no other caller may receive it
CALL = tuple[str, str]  # method, route
DECISION = "api/v1/decision/<id:decision_id>"
UPLOADS = "api/v1/artifacts/uploads"
TOOL_CALL = "api/v1/tools/<id:name>/call"
OUTCOME = {"outcome_status": "success", "outcome_note": "done"}
UPLOAD = {"name": "a.txt", "mimeType": "text/plain", "sizeBytes": 1, "sha256": "0" * 64}
# The bodies of the calls that have one; {…} is replaced by the id of the owner's row.
BODIES: dict[CALL, dict[str, Any]] = {
    ("POST", "api/v1/runs"): {
        "templateId": "test_stepwise",
        "inputs": {"do": ["ok"]},
        "options": {"mode": "async"},
    },
    ("POST", f"{RUN}/answer"): {"answer": "yes"},
    ("POST", TOOL_CALL): {"args": {"path": "."}, "targetId": "{targetId}"},
    ("POST", "api/v1/targets"): {"kind": "docker-runner", "name": "r"},
    ("PUT", TARGET): {"name": "t", "config": {"root": "{root}"}},
    ("POST", "api/v1/webhooks"): {"url": "https://93.184.216.34/"},
    ("POST", "api/v1/tasks"): {"title": "t"},
    ("POST", "api/v1/plugin/ticket"): {"name": "b"},
    ("POST", f"{TASK}/messages"): {"content": "say hi"},
    ("POST", "api/v1/page-content"): {"artifactId": "{artifactId}", "grep": "x"},
    ("POST", "api/v1/sessions"): {"name": "s"},
    ("PATCH", SESSION): {"name": "s"},
    ("POST", f"{SESSION}/clone"): {"name": "c"},
    ("POST", UPLOADS): UPLOAD,
    ("POST", "api/v1/chat"): {"user_id": "alice", "message": HARMLESS, "idempotency_key": "k"},
    ("POST", f"{DECISION}/confirm"): {"user_id": "alice", "confirm_token": "x"},
    ("POST", f"{DECISION}/outcome"): OUTCOME,
    ("POST", f"{USER}/objects/shell"): SHELL,
    ("POST", f"{USER}/objects/success-path"): SUCCESS_PATH,
}
QUERIES = {
    f"{RUN}/events": "?waitMs=0",
    f"{RUN}/wait": "?waitMs=0",
    f"{TASK}/events": "?waitMs=0",
    f"{DECISION}/outcome": "?user_id=alice",
}
# The table of docs/trust.md, and the callers of its columns.
DOC = Path("docs/trust.md")
COLUMNS = (
    "owner",
    "same workspace",
    "limited to another user",
    "other workspace",
    "other tenant",
    "operator without rights",
    "expired token",
)
# What a call answers, by the word of the table.
CARRIED_OUT = (200, 201, 202, 400, 409, 422)
MCP_ERRORS = {"_NOT_FOUND": 404, "not_found": 404, "forbidden": 403, "There is no ": 404}
# The codes with which a WebSocket ends; 403: it is not opened, 0: it stays open.
CLOSED = {"yes": (0,), "missing": (4404,), "refused": (4403,), "sign in": (403, 4401)}
REMOTE = {"Forwarded": "for=203.0.113.9"}  # a call with it is remote


def expected_answers() -> dict[str, dict[tuple[str, str], str]]:
    """Return what the table of docs/trust.md says, by entry point, caller and level of the call."""
    text = DOC.read_text().split("## What belongs to another caller")[1]
    answers: dict[str, dict[tuple[str, str], str]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) != 1 + len(COLUMNS) or "`" not in cells[0]:
            continue
        row: dict[tuple[str, str], str] = {}
        for caller, cell in zip(COLUMNS, cells[1:], strict=True):
            local, remote = cell.split(" · ")
            row |= {(caller, "local"): local, (caller, "remote"): remote}
        for name in re.findall("`([^`]+)`", cells[0]):
            assert name not in answers, name
            answers[name] = row
    return answers


ANSWERS = expected_answers()


def entry_point(call: CALL) -> str:
    """Return a REST call as the table names it."""
    method, route = call
    route = route.removeprefix("api/v1/").replace("<id:", "{").replace(">", "}")
    return f"{method} /{route}"


# The tools of the registry: the scope of a direct call, and arguments that name a row of the owner
# or its target; None: there are none, because the tool works on a page of the caller's own run.
READ, WRITE = "tools:read", "tools:write"
TOOLS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "ask_followup_question": (READ, {"question": "q"}),
    "attempt_completion": (READ, {"result": "r"}),
    "browser_action": (WRITE, {"action": "screenshot"}),
    "check_login": (READ, None),
    "click_element": (WRITE, None),
    "confirm_search": (READ, None),
    "execute_command": (WRITE, {"scriptName": "dev"}),
    "fill_field": (WRITE, None),
    "find_element": (READ, None),
    "generate_character_profile": (WRITE, {"name": "a", "imageFile": "a.png"}),
    "get_runtime_info": (READ, {}),
    "list_files": (READ, {"path": "."}),
    "list_project_resources": (READ, {}),
    "list_snapshots": (READ, {}),
    "open_page": (READ, None),
    "preview_scene": (WRITE, {"scenePath": "start.txt"}),
    "read_current_page": (READ, None),
    "read_file": (READ, {"path": f"{SECRET}.txt"}),
    "read_page": (READ, None),
    "replace_in_file": (WRITE, {"path": f"{SECRET}.txt", "find": "a", "replace": "b"}),
    "restore_snapshot": (READ, {"snapshotId": "x"}),
    "search_files": (READ, {"path": ".", "regex": "only"}),
    "submit_form": (WRITE, None),
    "validate_script": (READ, {"path": f"{SECRET}.txt"}),
    "wait_for": (READ, None),
    "watch_page": (READ, None),
    "write_to_file": (WRITE, {"path": "a.txt", "content": "", "dryRun": True}),
}
# The MCP tools beside those: their scope and arguments.
MCP_TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "continuity_chat": ("continuity:write", BODIES["POST", "api/v1/chat"]),
    "continuity_confirm_decision": (
        "continuity:write",
        {"decision_id": "{decision_id}", "user_id": "alice", "confirm_token": "x"},
    ),
    "continuity_report_outcome": (
        "continuity:write",
        {"decision_id": "{decision_id}", "user_id": "alice", **OUTCOME},
    ),
    "continuity_get_state": ("continuity:read", {"user_id": "alice"}),
    "continuity_list_objects": ("continuity:read", {"user_id": "alice"}),
    "continuity_put_shell": ("continuity:write", {"user_id": "alice", **SHELL}),
    "continuity_put_success_path": ("continuity:write", {"user_id": "alice", **SUCCESS_PATH}),
    "list_task_templates": ("runs:read", {}),
    "run_task_template": ("runs:write", BODIES["POST", "api/v1/runs"]),
    "get_task_run": ("runs:read", {"runId": "{runId}"}),
    "list_task_runs": ("runs:read", {}),
    "cancel_task_run": ("runs:write", {"runId": "{runId}"}),
    "get_artifact": ("artifacts:read", {"artifactId": "{artifactId}"}),
    "read_page_content": ("artifacts:read", {"artifactId": "{artifactId}", "grep": "x"}),
    "get_runtime_profile": ("runs:read", {}),
    "subscribe_task_run_events": ("runs:read", {"runId": "{runId}", "waitMs": 0}),
    "wait_task_run": ("runs:read", {"runId": "{runId}", "waitMs": 0}),
    "answer_task_run": ("runs:write", {"runId": "{runId}", "answer": "yes"}),
}
# The MCP resources: the scope to read one.
RESOURCES = {
    "continuity://runs/{runId}": "runs:read",
    "continuity://runs/{runId}/events{?after}": "runs:read",
    "continuity://artifacts/{artifactId}{?offset}": "artifacts:read",
}
# Admin pages that need a session but no permission; they show only what its user may see.
ADMIN_OF_ALL_STAFF = {
    "admin/",
    "admin/search/",
    "admin/password_change/",
    "admin/password_change/done/",
    "admin/jsi18n/",
    "admin/logout/",
}
ADMIN_OPEN = {
    "admin",
    "admin/login/",
    "admin/language/",
    "admin/texts/<str:language>.js",
    "admin/once/<str:token>/",
    "admin/logout/",
    "admin/jsi18n/",
}
NOT_SIGNED_IN = ("anonymous", "revoked")  # and those of the table
CALLS = [(method, route) for route, methods in SCOPED.items() for method in methods]


@dataclass
class Grid:
    """The callers, and the owner's rows."""

    web: httpx.Client
    headers: dict[str, dict[str, str]]
    ids: dict[str, str]
    wrong: dict[str, str] = field(default_factory=dict)

    def send(
        self, caller: str, method: str, route: str, more: Mapping[str, str] = MappingProxyType({})
    ) -> httpx.Response:
        """Send a call with the ids of the owner's rows."""
        path = f"/{route}{QUERIES.get(route, '')}"
        for name, value in self.ids.items():
            path = path.replace(f"<id:{name}>", value)
        body = BODIES.get((method, route))
        if body is not None:
            body = {
                name: value.format(**self.ids) if value in ("{targetId}", "{artifactId}") else value
                for name, value in body.items()
            } | ({"config": {"root": self.ids["root"]}} if "config" in body else {})
        headers = {**self.headers[caller], **more}
        return self.web.request(method, path, json=body, headers=headers)

    def mcp(self, caller: str, tool: str, args: dict[str, Any], **more: str) -> httpx.Response:
        """Call an MCP tool with the ids of the owner's rows."""
        ids: dict[str, Any] = {f"{{{name}}}": value for name, value in self.ids.items()}
        ids["{decision_id}"] = int(self.ids["decision_id"])
        arguments = {name: ids.get(str(value), value) for name, value in args.items()}
        params = {"name": tool, "arguments": arguments}
        return self.mcp_message(caller, "tools/call", params, **more)

    def mcp_message(
        self, caller: str, method: str, params: dict[str, Any], **more: str
    ) -> httpx.Response:
        """Send an MCP message."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = self.headers[caller] | HEADERS | more
        return self.web.post("/mcp", json=message, headers=headers)

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create a row of the owner."""
        sent = self.web.post(f"/api/v1/{path}", json=body, headers=self.headers["owner"])
        assert sent.status_code in (200, 201, 202), sent.text
        return dict(sent.json())

    def create_deletable(self, route: str = "") -> None:
        """Create the owner's rows that a call deletes: all, or that of a route."""
        config = {"root": self.ids["root"]}
        if route in ("", TARGET):
            fields = {"kind": "workspace", "name": SECRET, "config": config}
            self.ids["targetId"] = self.create("targets", fields)["targetId"]
        if route in ("", SESSION):
            self.ids["sessionId"] = self.create("sessions", {"name": SECRET})["sessionId"]
        if route in ("", BROWSER):
            self.ids["clientId"] = _paired_browser(self.headers["owner"])
        if route in ("", HOOK):
            hook = {"url": "http://127.0.0.1:9/", "name": SECRET}
            self.ids["webhookId"] = self.create("webhooks", hook)["webhookId"]
            self.ids["deliveryId"] = WebhookDelivery.objects.create(
                id=new_id("msg_"),
                webhook=Webhook.objects.get(id=self.ids["webhookId"]),
                run_id=self.ids["runId"],
                event="run.failed",
                next_try_at=datetime.now(UTC),
                created_at=datetime.now(UTC),
            ).id

    def check(self) -> None:
        """Fail if a caller got another answer than the tables say."""
        assert not self.wrong, "\n".join(f"{name}: {got}" for name, got in self.wrong.items())

    def expect(self, caller: str, call: CALL, *statuses: int) -> None:
        """Send a call and note a status other than these, or a secret of the owner."""
        response = self.send(caller, *call)
        if response.status_code not in statuses or SECRET in response.text:
            self.wrong[f"{caller}: {' '.join(call)}"] = _brief(response)

    def compare(self, cell: tuple[str, str], name: str, response: httpx.Response) -> None:
        """Note an answer other than that of the table of docs/trust.md."""
        word = ANSWERS[name][cell]
        if SECRET in response.text and word not in ("yes", "shared"):
            self.wrong[f"{name}, {cell}"] = f"has the owner's data: {_brief(response)}"
        if word != (found := _word_of(response)) and not (
            found == "yes" and word in ("own", "shared")
        ):
            self.wrong[f"{name}, {cell}"] = f"{word} in the table, {found}: {_brief(response)}"


def _brief(response: httpx.Response) -> str:
    return f"{response.status_code} {response.text[:300]}"


def _word_of(response: httpx.Response) -> str:
    """Return the word of the table for an answer over REST or MCP."""
    status, text = response.status_code, response.text
    if '"isError":true' in text or '"error":{' in text:  # over MCP
        status = next((status for mark, status in MCP_ERRORS.items() if mark in text), status)
    if status in (400, 403) and "TRUST_LEVEL_NOT_ALLOWED" in text:
        return "refused"
    if "invalid_or_expired_confirm_token" in text:
        return "wrong"
    words = {401: "sign in", 403: "refused", 404: "missing"}
    return words.get(status, "yes" if status in CARRIED_OUT else str(status))


@pytest.fixture
def grid(
    web: str,
    principal: Principal,
    staff_client: Callable[..., Client],
    make_artifact: Callable[..., str],
    make_task: Callable[..., str],
    tmp_path: Path,
    settings: Any,
) -> Iterator[Grid]:
    """Create the callers and a row of each kind that belongs to the owner."""
    settings.WORKSPACE_ROOTS, settings.THROTTLE_PER_SECOND = (tmp_path,), 100_000
    (tmp_path / f"{SECRET}.txt").write_text(SECRET)
    cookie = staff_client().cookies.output(attrs=[], header="")
    headers = {
        "anonymous": {},
        "owner": _token("owner"),
        "same workspace": _token("same workspace"),
        "limited to another user": _token("other user", users=["carol"]),
        "other workspace": _token("other workspace", workspace="elsewhere"),
        "other tenant": _token("other tenant", tenant="elsewhere"),
        "revoked": _token("revoked"),
        "expired token": _token("expired"),
        "operator without rights": {"Cookie": cookie.strip()},
        **{f"without {scope}": _token("limited", scopes=SCOPES - {scope}) for scope in SCOPES},
    }
    now = datetime.now(UTC)
    Token.objects.filter(name="revoked").update(revoked_at=now)
    Token.objects.filter(name="expired").update(expires_at=now)
    with httpx.Client(base_url=web, timeout=30) as client:
        made = Grid(client, headers, {"name": "list_files", "user_id": "alice"})
        made.ids["root"] = str(tmp_path)
        _create_rows(made, make_artifact, make_task, principal)
        yield made


def _token(name: str, **options: Any) -> dict[str, str]:
    return bearer(create_token(name=name, trust="local", **{"scopes": SCOPES, **options}))


def _create_rows(
    grid: Grid,
    make_artifact: Callable[..., str],
    make_task: Callable[..., str],
    principal: Principal,
) -> None:
    ids = grid.ids
    ids["runId"] = grid.create("runs", BODIES["POST", "api/v1/runs"])["runId"]
    ids["artifactId"] = make_artifact(SECRET.encode(), name=SECRET, run_id=ids["runId"])
    grid.create_deletable()
    ids["uploadId"] = grid.create("artifacts/uploads", UPLOAD)["uploadId"]
    ids["taskId"] = make_task(title=SECRET)
    ids["decision_id"] = str(create_decision_with_outcome(principal).decision_id)
    grid.create("user/alice/objects/shell", {**SHELL, "narratives": {"role": SECRET}})


def _paired_browser(owner: dict[str, str]) -> str:
    secret = owner["Authorization"].removeprefix("Bearer ")
    ticket = create_ticket(principal=authenticate(secret), name=SECRET)["ticket"]
    about = {**ABOUT, "extension": {**ABOUT["extension"], "name": SECRET}}
    return pair_browser_of(ticket, about).client_id


def test_the_tables_name_existing_calls_only() -> None:
    assert BODIES.keys() <= set(CALLS)
    assert QUERIES.keys() <= SCOPED.keys()


def test_the_table_of_the_docs_names_every_entry_point() -> None:
    tools = {f"`{name}`" for name in MCP_TOOLS}
    resources = {re.sub("{[?].*", "", uri) for uri in RESOURCES}
    sockets = {"/ws/tasks/{taskId}", f"/ws/tasks/{{taskId}}{END}"}
    calls = {entry_point(call) for call in CALLS}
    named = re.findall("`(tests/[^`]+[.]py)`", DOC.read_text())
    assert [path for path in named if not Path(path).is_file()] == []
    assert ANSWERS.keys() == {name.strip("`") for name in tools} | resources | sockets | calls


def test_no_credential_of_the_api_means_no_call(grid: Grid) -> None:
    for call in CALLS:
        for caller in NOT_SIGNED_IN:
            grid.expect(caller, call, 401)
        grid.expect(f"without {SCOPED[call[1]][call[0]]}", call, 403)
    grid.check()


def test_each_rest_call_answers_each_caller_as_the_docs_say(grid: Grid) -> None:
    cells = [(call, cell) for call in CALLS for cell in ANSWERS[entry_point(call)]]
    # Those that are carried out last, because they change the rows; those that delete them at the
    # end, and what they delete is created again for the next caller.
    order = ("GET", "PUT", "PATCH", "POST", "DELETE")
    cells.sort(key=lambda each: (_is_carried_out(*each), order.index(each[0][0])))
    for call, cell in cells:
        caller, level = cell
        response = grid.send(caller, *call, REMOTE if level == "remote" else {})
        grid.compare(cell, entry_point(call), response)
        if call[0] == "DELETE" and response.is_success:
            grid.create_deletable(call[1])
    grid.check()


def _is_carried_out(call: CALL, cell: tuple[str, str]) -> bool:
    return ANSWERS[entry_point(call)][cell] not in ("missing", "refused", "sign in", "wrong")


def test_each_tool_answers_each_caller_as_the_table_says(grid: Grid) -> None:
    assert {tool.name for tool in list_tools()} == TOOLS.keys()
    for name, (scope, args) in TOOLS.items():
        body: dict[str, Any] = {"args": args or {}}
        expected = {caller: {401} for caller in NOT_SIGNED_IN} | {f"without {scope}": {403}}
        if args is not None:
            body["targetId"] = grid.ids["targetId"]
            expected |= {"other workspace": {404}, "other tenant": {404}}
        for caller, statuses in expected.items():
            answer = grid.web.post(
                f"/api/v1/tools/{name}/call", json=body, headers=grid.headers[caller]
            )
            if answer.status_code not in statuses or SECRET in answer.text:
                grid.wrong[f"{caller}: {name}"] = f"{answer.status_code} {answer.text[:200]}"
    grid.check()
    read = {"args": {"path": f"{SECRET}.txt"}, "targetId": grid.ids["targetId"]}
    answer = grid.web.post("/api/v1/tools/read_file/call", json=read, headers=grid.headers["owner"])
    assert SECRET in answer.text


def test_each_mcp_tool_answers_each_caller_as_the_table_says(grid: Grid) -> None:
    on_pages = {name for name, (_, args) in TOOLS.items() if args is None}
    offered = load_toolsets([module.name for module in pkgutil.iter_modules(toolsets.__path__)])
    # The server of this test does not offer the toolset `browser`: see test_mcp_browser.py.
    offered = {name: tool for name, tool in offered.items() if name not in ACTIONS}
    assert offered.keys() == MCP_TOOLS.keys() | (TOOLS.keys() - on_pages)
    for name in offered:
        scope, args = MCP_TOOLS[name] if name in MCP_TOOLS else TOOLS[name]
        args = args or {}
        for caller in NOT_SIGNED_IN:
            if grid.mcp(caller, name, args).status_code != 401:
                grid.wrong[f"{caller}: {name}"] = "not 401"
        limited = grid.mcp(f"without {scope}", name, args).text
        is_offered = name not in load_toolsets(["developer"])
        if is_offered and f"lacks the scope {scope}" not in limited:
            grid.wrong[f"without {scope}: {name}"] = limited[:300]
        # Those beside the table's work on a target, as POST /tools/{name}/call.
        foreign = grid.mcp("other workspace", name, args)
        if SECRET in foreign.text:
            grid.wrong[f"other workspace: {name}"] = foreign.text[:300]
    grid.check()
    for name in ("get_task_run", "get_artifact"):
        assert '"isError":false' in grid.mcp("owner", name, MCP_TOOLS[name][1]).text


def test_each_mcp_tool_answers_each_caller_as_the_docs_say(grid: Grid) -> None:
    for name, (_, args) in MCP_TOOLS.items():
        cells = ANSWERS[name]
        for cell in sorted(cells, key=lambda cell: cells[cell] == "yes"):  # these change the rows
            caller, level = cell
            answer = grid.mcp(caller, name, args, **(REMOTE if level == "remote" else {}))
            grid.compare(cell, name, answer)
    grid.check()


def test_each_mcp_resource_answers_each_caller_as_the_table_says(grid: Grid) -> None:
    assert {template.uri_template for template in TEMPLATES} == RESOURCES.keys()
    for template, scope in RESOURCES.items():
        uri = re.sub(r"{[?].*", "", template).format(**grid.ids)
        for caller in NOT_SIGNED_IN:
            if grid.mcp_message(caller, "resources/read", {"uri": uri}).status_code != 401:
                grid.wrong[f"{caller}: {uri}"] = "not 401"
        limited = grid.mcp_message(f"without {scope}", "resources/read", {"uri": uri})
        if "lacks the scope" not in limited.text:
            grid.wrong[f"without {scope}: {uri}"] = _brief(limited)
        name = re.sub(r"{[?].*", "", template)
        for cell, word in ANSWERS[name].items():
            caller, more = cell[0], REMOTE if cell[1] == "remote" else {}
            answer = grid.mcp_message(caller, "resources/read", {"uri": uri}, **more)
            grid.compare(cell, name, answer)
            listed = grid.mcp_message(caller, "resources/list", {}, **more).text
            if word != "yes" and grid.ids["runId"] in listed:
                grid.wrong[f"{cell}: {uri}"] = f"listed: {listed[:300]}"
        assert '"contents"' in grid.mcp_message("owner", "resources/read", {"uri": uri}).text
    grid.check()


def test_each_mcp_address_needs_a_token(grid: Grid) -> None:
    assert {"/mcp", "/mcp/", "/sse", "/sse/", "/messages", "/messages/"} == PATHS
    for path in PATHS:
        for caller in NOT_SIGNED_IN:
            for method in ("GET", "POST", "DELETE"):
                answer = grid.web.request(method, path, headers=grid.headers[caller] | HEADERS)
                if answer.status_code not in (401, 404, 405):
                    grid.wrong[f"{caller}: {method} {path}"] = str(answer.status_code)
    grid.check()


def test_each_websocket_is_closed_for_callers_without_the_right(grid: Grid, web: str) -> None:
    assert {name for name in vars(asgi) if name.startswith("serve_")} == {
        "serve_task",
        "serve_live",
        "serve_extension",  # tests/contract/test_extension_socket.py
    }
    for end in ("", END):
        path = f"{grid.ids['taskId']}{end}"
        cells = ANSWERS[f"/ws/tasks/{{taskId}}{end}"] | {
            ("revoked", "local"): "sign in",
            ("without tasks:read", "local"): "refused",
        }
        for (caller, level), word in cells.items():
            token = grid.headers[caller].get("Authorization", "").removeprefix("Bearer ")
            for at in ("header", "frame"):
                more = REMOTE if level == "remote" else {}
                code, frames = _open(web, path, token, at, more, is_open=word == "yes")
                if code not in CLOSED[word] or (SECRET in frames and word != "yes"):
                    grid.wrong[f"{caller} {level}, token in {at}: {path}"] = f"{code} {frames}"
    grid.check()


def _open(
    web: str, path: str, token: str, at: str, more: dict[str, str], *, is_open: bool
) -> tuple[int, str]:
    """Open a WebSocket; return the code of its end and what it sent. 403: it was not opened; 0: it
    stayed open.
    """
    in_header = token if at == "header" and token else None
    try:
        with open_task_socket(web, path, token=in_header, headers=more) as socket:
            if in_header is None:
                socket.send({"type": "auth", "token": token})
            if is_open:
                return int(not socket.request({"v": 1, "type": "ping", "id": "p"})), ""
            frames = list(socket.remaining_frames())
            return socket.close_code(), str(frames)
    except InvalidStatus as refused:
        return refused.response.status_code, ""


def test_each_admin_page_needs_a_session_and_a_permission(
    grid: Grid, staff_client: Callable[..., Client]
) -> None:
    stranger, staff = Client(), staff_client()
    for route in (route for route in FOUND if route.startswith(STAFF)):
        path = _admin_path(route, grid)
        for method in (stranger.get, stranger.post):
            answer = method(path)
            to_login = answer.headers.get("Location", "").startswith("/admin/login/")
            if route not in ADMIN_OPEN and not to_login:
                grid.wrong[f"anonymous: {path}"] = str(answer.status_code)
        for method in (staff.get, staff.post):
            if route in ADMIN_OF_ALL_STAFF | ADMIN_OPEN and method == staff.post:
                continue  # the password form, signing out
            answer = method(path)
            is_open = route in ADMIN_OF_ALL_STAFF | ADMIN_OPEN
            # To the index: there is no such row. To the page itself: from an old address.
            location = answer.headers.get("Location", "")
            is_redirect = location in ("/admin/", f"{path}change/")
            is_refused = is_redirect or answer.status_code in (403, 404, 405)
            if SECRET in answer.content.decode() or not (is_open or is_refused):
                grid.wrong[f"staff: {path}"] = str(answer.status_code)
    grid.check()


def _admin_path(route: str, grid: Grid) -> str:
    """Return an address of the route, of an existing row if there is one."""
    ids = {"run_id": "runId", "task_id": "taskId", "artifact_id": "artifactId"}
    ids |= {"target_id": "targetId", "session_id": "sessionId", "client_id": "clientId"}
    for name, of_grid in ids.items():
        route = route.replace(f"<str:{name}>", grid.ids[of_grid])
    parts = route.split("/")
    if "<path:object_id>" in route and parts[1] != "r":
        row = apps.get_model(parts[1], parts[2])._default_manager.first()
        route = route.replace("<path:object_id>", str(row.pk) if row else "1")
    route = re.sub(r"<[^>]*>", "1", route.replace("^(?P<app_label>", "^(").replace("(?P<url>", "("))
    return "/" + {"admin/^(decisions|auth|artifacts|runners|runs)/$": "admin/runs/"}.get(
        route, route.replace("(.*)$", "none")
    )
