"""Test who gets what: every REST call, tool, MCP tool, WebSocket and admin page, for each kind of
caller. What the product has and the tables below do not name fails.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.apps import apps
from django.test import Client
from websockets.exceptions import InvalidStatus

from config import asgi
from decisions.identity.principals import SCOPES, Principal, authenticate, create_token
from decisions.models import Token
from mcp_server import toolsets
from mcp_server.http.lazy_loading import PATHS
from mcp_server.protocol.resources import TEMPLATES
from mcp_server.tools.registry import load_toolsets
from runners.actions.catalogue import ACTIONS
from runners.plugin.pairing.registry import pair_client
from runners.plugin.pairing.tickets import create_ticket
from runners.tools.registry import list_tools
from runs.models import Webhook, WebhookDelivery
from runs.websockets.live import END
from tests.contract.mcp_http_host import HEADERS
from tests.contract.test_rest_routes import (
    BROWSER,
    FOUND,
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

pytest_plugins = [
    "tests.support.rest.rest_fixtures",
    "tests.support.admin.admin_fixtures",
    "tests.support.runs.task_fixtures",
]
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
    ("POST", "api/v1/webhooks"): {"url": "http://127.0.0.1:9/"},
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
# What a caller of another workspace gets where the path names no row of a workspace.
OF_ITS_OWN = {
    "api/v1/templates",
    "api/v1/runs",
    "api/v1/audit",
    "api/v1/tools",
    "api/v1/targets",
    "api/v1/webhooks",
    "api/v1/tasks",
    "api/v1/plugin/ticket",
    "api/v1/plugin/clients",
    "api/v1/extension/extension-list",
    "api/v1/runtime/profile",
    "api/v1/sessions",
    UPLOADS,
    "api/v1/chat",
    f"{USER}/state",
    f"{USER}/objects",
    f"{USER}/objects/shell",
    f"{USER}/objects/shell/latest",
    f"{USER}/objects/success-path",
}
# Where all failures have one answer (S2: a wrong token, an unknown decision, another's decision).
ONE_FAILURE = {f"{DECISION}/confirm": 400}
# What a token of the same workspace gets that acts for another user; all other rows belong to the
# workspace (docs/trust.md, Limit a token).
OTHER_USER = {
    SESSION: 404,
    f"{SESSION}/clone": 404,
    "api/v1/plugin/clients": 200,
    "api/v1/extension/extension-list": 200,
    BROWSER: 404,
    f"{BROWSER}/snapshot": 404,
    "api/v1/chat": 403,
    f"{DECISION}/confirm": 400,
    f"{DECISION}/outcome": 403,
    f"{USER}/state": 403,
    f"{USER}/objects": 403,
    f"{USER}/objects/shell": 403,
    f"{USER}/objects/shell/latest": 403,
    f"{USER}/objects/success-path": 403,
}
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
        {"decision_id": 1, "user_id": "alice", "confirm_token": "x"},
    ),
    "continuity_report_outcome": (
        "continuity:write",
        {"decision_id": 1, "user_id": "alice", **OUTCOME},
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
NOT_SIGNED_IN = ("anonymous", "revoked", "expired", "staff")
CALLS = [(method, route) for route, methods in SCOPED.items() for method in methods]


@dataclass
class Grid:
    """The callers, and the owner's rows."""

    web: httpx.Client
    headers: dict[str, dict[str, str]]
    ids: dict[str, str]
    wrong: dict[str, str] = field(default_factory=dict)

    def send(self, caller: str, method: str, route: str) -> httpx.Response:
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
        return self.web.request(method, path, json=body, headers=self.headers[caller])

    def mcp(self, caller: str, tool: str, args: dict[str, Any]) -> httpx.Response:
        """Call an MCP tool with the ids of the owner's rows."""
        ids = {f"{{{name}}}": value for name, value in self.ids.items()}
        arguments = {name: ids.get(str(value), value) for name, value in args.items()}
        return self.mcp_message(caller, "tools/call", {"name": tool, "arguments": arguments})

    def mcp_message(self, caller: str, method: str, params: dict[str, Any]) -> httpx.Response:
        """Send an MCP message."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.web.post("/mcp", json=message, headers=self.headers[caller] | HEADERS)

    def check(self) -> None:
        """Fail if a caller got another answer than the tables say."""
        assert not self.wrong, "\n".join(f"{name}: {got}" for name, got in self.wrong.items())

    def expect(
        self, caller: str, call: CALL, *statuses: int, secret_is_shared: bool = False
    ) -> None:
        """Send a call and note a status other than these, or a secret of the owner."""
        response = self.send(caller, *call)
        name = f"{caller}: {' '.join(call)}"
        if response.status_code not in statuses:
            self.wrong[name] = f"{response.status_code} {response.text[:200]}"
        elif SECRET in response.text and not secret_is_shared:
            self.wrong[name] = f"has the owner's data: {response.text[:300]}"


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
    headers = {
        "anonymous": {},
        "owner": _token("owner"),
        "other user": _token("other user", users=["carol"]),
        "other workspace": _token("other workspace", workspace="elsewhere"),
        "revoked": _token("revoked"),
        "expired": _token("expired"),
        "staff": {"Cookie": staff_client().cookies.output(attrs=[], header="").strip()},
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
    def create(path: str, body: dict[str, Any], status: int = 201) -> dict[str, Any]:
        sent = grid.web.post(f"/api/v1/{path}", json=body, headers=grid.headers["owner"])
        assert sent.status_code in (200, 201, 202), sent.text
        return dict(sent.json())

    ids = grid.ids
    ids["runId"] = create("runs", BODIES["POST", "api/v1/runs"])["runId"]
    ids["artifactId"] = make_artifact(SECRET.encode(), name=SECRET, run_id=ids["runId"])
    config = {"root": ids["root"]}
    target = {"kind": "workspace", "name": SECRET, "config": config}
    ids["targetId"] = create("targets", target)["targetId"]
    hook = {"url": "http://127.0.0.1:9/", "name": SECRET}
    ids["webhookId"] = create("webhooks", hook)["webhookId"]
    ids["deliveryId"] = WebhookDelivery.objects.create(
        id="msg_1",
        webhook=Webhook.objects.get(),
        run_id=ids["runId"],
        event="run.failed",
        next_try_at=datetime.now(UTC),
        created_at=datetime.now(UTC),
    ).id
    ids["sessionId"] = create("sessions", {"name": SECRET})["sessionId"]
    ids["uploadId"] = create("artifacts/uploads", UPLOAD)["uploadId"]
    ids["taskId"] = make_task(title=SECRET)
    ids["clientId"] = _paired_browser(grid.headers["owner"])
    ids["decision_id"] = str(create_decision_with_outcome(principal).decision_id)
    create("user/alice/objects/shell", {**SHELL, "narratives": {"role": SECRET}})


def _paired_browser(owner: dict[str, str]) -> str:
    secret = owner["Authorization"].removeprefix("Bearer ")
    ticket = create_ticket(principal=authenticate(secret), name=SECRET)["ticket"]
    about = {**ABOUT, "extension": {**ABOUT["extension"], "name": SECRET}}
    return pair_client(ticket, about).client_id


def test_the_tables_name_existing_calls_only() -> None:
    assert BODIES.keys() <= set(CALLS)
    assert (OF_ITS_OWN | OTHER_USER.keys() | QUERIES.keys()) <= SCOPED.keys()


def test_each_rest_call_answers_each_caller_as_the_tables_say(grid: Grid) -> None:
    for call in CALLS:
        scope = SCOPED[call[1]][call[0]]
        for caller in NOT_SIGNED_IN:
            grid.expect(caller, call, 401)
        grid.expect(f"without {scope}", call, 403)
        foreign = (ONE_FAILURE.get(call[1], 404),)
        statuses = (200, 201, 202) if call[1] in OF_ITS_OWN else foreign
        grid.expect("other workspace", call, *statuses)
        if call[1] in OTHER_USER:
            grid.expect("other user", call, OTHER_USER[call[1]])
        elif call[0] == "GET":
            grid.expect("other user", call, 200, secret_is_shared=True)
    # Last, because these calls change the rows; those that delete them at the end.
    for call in sorted(
        CALLS, key=lambda call: ("GET", "PUT", "PATCH", "POST", "DELETE").index(call[0])
    ):
        grid.expect("owner", call, 200, 201, 202, 400, 409, 422, secret_is_shared=True)
    grid.check()


def test_each_tool_answers_each_caller_as_the_table_says(grid: Grid) -> None:
    assert {tool.name for tool in list_tools()} == TOOLS.keys()
    for name, (scope, args) in TOOLS.items():
        body: dict[str, Any] = {"args": args or {}}
        expected = {caller: {401} for caller in NOT_SIGNED_IN} | {f"without {scope}": {403}}
        if args is not None:
            body["targetId"] = grid.ids["targetId"]
            expected["other workspace"] = {404}
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
        foreign = grid.mcp("other workspace", name, args)
        names_row = any(str(value) in ("{runId}", "{artifactId}") for value in args.values())
        is_refused = '"isError":true' in foreign.text or '"error"' in foreign.text
        if SECRET in foreign.text or (names_row and not is_refused):
            grid.wrong[f"other workspace: {name}"] = foreign.text[:300]
    grid.check()
    for name in ("get_task_run", "get_artifact"):
        assert '"isError":false' in grid.mcp("owner", name, MCP_TOOLS[name][1]).text


def test_each_mcp_resource_answers_each_caller_as_the_table_says(grid: Grid) -> None:
    assert {template.uri_template for template in TEMPLATES} == RESOURCES.keys()
    for template, scope in RESOURCES.items():
        uri = re.sub(r"{[?].*", "", template).format(**grid.ids)
        for caller in NOT_SIGNED_IN:
            if grid.mcp_message(caller, "resources/read", {"uri": uri}).status_code != 401:
                grid.wrong[f"{caller}: {uri}"] = "not 401"
        for caller in (f"without {scope}", "other workspace"):
            answer = grid.mcp_message(caller, "resources/read", {"uri": uri}).text
            listed = grid.mcp_message(caller, "resources/list", {}).text
            if '"error"' not in answer or SECRET in answer or uri in listed:
                grid.wrong[f"{caller}: {uri}"] = f"{answer[:300]} {listed[:300]}"
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
        "serve_plugin",  # tests/contract/test_plugin_socket.py
    }
    for path in (grid.ids["taskId"], f"{grid.ids['taskId']}{END}"):
        for caller in ("revoked", "expired", "other workspace", "without tasks:read"):
            token = grid.headers[caller]["Authorization"].removeprefix("Bearer ")
            for at in ("header", "frame"):
                code, frames = _open(web, path, token, at)
                if code not in (403, 4401, 4403, 4404) or SECRET in frames:
                    grid.wrong[f"{caller}, token in {at}: {path}"] = f"{code} {frames}"
        code, frames = _open(web, path, "", "frame")
        if code not in (403, 4401) or SECRET in frames:
            grid.wrong[f"anonymous: {path}"] = f"{code} {frames}"
    grid.check()


def _open(web: str, path: str, token: str, at: str) -> tuple[int, str]:
    """Open a WebSocket; return the code of its end and what it sent. 403: it was not opened."""
    try:
        with open_task_socket(web, path, token=token if at == "header" else None) as socket:
            if at == "frame":
                socket.send({"type": "auth", "token": token})
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
