"""A secret of each kind is planted, everything runs, and every table, file, log line, answer and
page is searched for each secret. Where one may be is in docs/security.md, "Where secrets may be".
"""

from __future__ import annotations

import asyncio
import base64
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from django.test import Client

from decisions.authorization.sealed_arguments import shown_digest
from decisions.foundation.errors import RunNeedsConfirmation
from decisions.identity.principals import Principal
from decisions.models import Decision
from runners.browser_sessions import read_state
from runners.models import BrowserSession, PluginClient
from runners.paired_browser.pairing.tickets import create_ticket
from runners.targets.runner_endpoint import probe_target
from runners.targets.targets import TargetFields, allow_on_target, create_target_row
from runs.calls.direct.browser_actions import perform_action
from runs.conversations.services import create_task
from runs.models import Run, RunStep, Task
from runs.operations.backups.create import create_backup
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.contract.mcp_host import PrincipalTransport, StdioHost
from tests.contract.test_continuity_flow import RISKY
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.audit.canaries import Places, every_column, files_below, found_in
from tests.support.audit.secret_search import collect_logs, every_page
from tests.support.browser.page_server import PageResponse, html
from tests.support.browser.paired_browser import SHOP, TAB, ScriptedBrowser
from tests.support.browser.template_sites import Site
from tests.support.decisions.deciders import SURFACES, Decider
from tests.support.runners.protocol_browser import open_browser, pair_browser, tab
from tests.support.runners.stub_runner import RunnerConnection, stub_runner
from tests.support.runs.task_socket import open_task_socket
from tests.support.runs.waiting import wait_until
from tests.support.runs.webhooks import deliver

pytestmark = pytest.mark.usefixtures("open_loopback")
ROOT = Path(__file__).parents[2]
PLANTED = (
    "secret input",
    "URL credential",
    "URL in a goal",
    "target token",
    "model API key",
    "typed password",
    "password typed by a host",
)


def allowed_places() -> dict[str, tuple[str, ...]]:
    """Return the places of the table in docs/security.md, by kind of secret."""
    text = (ROOT / "docs/security.md").read_text().partition("## Where secrets may be")[2]
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \|$", text.partition("\n## ")[0], re.MULTILINE
    )
    return {kind: tuple(re.findall(r"`([^`]+)`", places)) for kind, places in rows}


def echo(connection_: RunnerConnection) -> None:
    """Answer with the headers of the request, in updates, output or error."""
    request = connection_.request
    assert request is not None
    header = request.headers["authorization"]
    if request.line.startswith("GET"):
        connection_.answer(orjson.dumps([{"name": "bash.exec", "description": header}]))
        return
    encoded = base64.b64encode(header.removeprefix("Bearer ").encode()).decode()
    whole = {"ok": True, "output": {header: encoded}}
    broken = {"ok": False, "error": {"code": header, "message": header}}
    result = broken if request.json["call"]["args"] else whole
    connection_.answer(orjson.dumps({"updates": [header[:12], header[12:]], "result": result}))


@contextmanager
def second_worker() -> Iterator[WorkerProcess]:
    """Open a worker that helps with batches."""
    process = WorkerProcess("w2")
    process.open()
    try:
        yield process
    finally:
        process.close()


def batch_of_urls(site: Site, url_secret: str, principal: Principal) -> str:
    """Submit a batch that two workers share; each page shows what it was sent."""

    def reflect(query: str) -> PageResponse:
        return html(f"<title>{query[-40:]}</title><h1>Report</h1><p>You sent {query}</p>")

    site.server.add("/reports", reflect)
    urls = [f"{site.url('/reports')}?n={n}&access_token={url_secret}" for n in range(30)]
    urls[7] = f"http://127.0.0.1:1/?access_token={url_secret}"
    return submit_run(
        principal=principal,
        template_id="batch_extract_pages",
        inputs={"urls": urls},
        options={"mode": "async", "timeoutMs": 300_000},
    ).run_id


def run_on_echoing_runner(
    api: httpx.Client, worker: WorkerProcess, principal: Principal, token: str
) -> str:
    """Call a runner that sends the Authorization header back; return the answers."""
    with stub_runner(echo) as runner:
        fields = TargetFields(
            principal.tenant_id,
            principal.workspace_id,
            "echo",
            "docker-runner",
            endpoint=runner.url,
            auth_token=token,
        )
        target = create_target_row(fields, actor="test")
        allow_on_target(target, ("bash.exec",), actor="test", reason="test")
        probe_target(target, actor="test")
        texts = []
        for args in ({}, {"fail": True}):
            call = {"name": "bash.exec", "targetId": target.id, "args": args}
            submit_run(
                principal=principal,
                template_id="call_tools",
                inputs={"calls": [call]},
                options={"mode": "async"},
            )
            worker.work()
            body = {"args": args, "targetId": target.id}
            texts.append(api.post("/api/v1/tools/bash.exec/call", json=body).text)
        texts.append(api.get("/api/v1/tools").text)
    return "\n".join(texts)


def type_password(
    model: ModelServer,
    browser: ScriptedBrowser,
    worker: WorkerProcess,
    principal: Principal,
    superuser_client: Client,
    password: str,
) -> str:
    """Let an agent type a password, which a person confirms; return the pages that they see."""
    browser.text = '[4] input password "Word" = ""'
    model.script = [
        Turn("", [Call("task_start", {"url": SHOP}, "open")]),
        Turn("", [Call("browser_type", {"tabId": TAB, "clickId": 4, "text": password}, "type")]),
        complete(),
    ]
    create_task(principal=principal, message="Log in.", target_id="plugin")
    worker.work()
    decision = Decision.objects.get(tool="browser_type")
    pages = [Decider(surface, superuser_client).see(decision.pk).text for surface in SURFACES]
    Decider("admin", superuser_client).decide(decision.pk, "confirm", shown_digest(decision))
    worker.work()
    (typed,) = [action for action in browser.sent if action.name == "browser_type"]
    assert typed.params["text"] == password
    return "\n".join(pages)


def type_as_host(
    browser: ScriptedBrowser,
    working: AbstractContextManager[None],
    principal: Principal,
    superuser_client: Client,
    password: str,
) -> str:
    """Type a password as a host does, which a person confirms; return what both are shown."""
    act = partial(perform_action, principal=principal)
    with working:
        opened = act(name="task_start", args={"url": SHOP}, session_id=None, target_id="plugin")
        session_id = asyncio.run(opened).session_id
        args = {"clickId": 4, "text": password}
        with pytest.raises(RunNeedsConfirmation) as asked:
            asyncio.run(act(name="browser_type", args=args, session_id=session_id))
        decision = Decision.objects.get(pk=asked.value.details["decisionId"])
        pages = [Decider(surface, superuser_client).see(decision.pk).text for surface in SURFACES]
        Decider("admin", superuser_client).decide(decision.pk, "confirm", shown_digest(decision))
        run_id = str(asked.value.details["runId"])
        wait_until(lambda: Run.objects.get(pk=run_id).status == "succeeded")
    assert browser.sent[-2].params["text"] == password
    return "\n".join([*pages, asked.value.message, str(asked.value.details)])


@contextmanager
def works_on(
    worker: WorkerProcess, in_background: Callable[[Callable[[], object]], Any]
) -> Iterator[None]:
    """Let a worker execute runs as they are submitted, within the block."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.02):
            worker.work()

    working = in_background(work)
    try:
        yield
    finally:
        stop.set()
        working.join(30)


@pytest.fixture
def type_passwords(
    model: ModelServer,
    browser: ScriptedBrowser,
    worker: WorkerProcess,
    in_background: Callable[[Callable[[], object]], Any],
    principal: Principal,
    superuser_client: Client,
) -> Callable[[dict[str, str]], str]:
    """Return a function that types passwords as an agent and as a host, and returns what people
    and the host are shown.
    """

    def type_in(secrets: dict[str, str]) -> str:
        people = principal, superuser_client
        of_agent = type_password(model, browser, worker, *people, secrets["typed password"])
        working = works_on(worker, in_background)
        return of_agent + type_as_host(
            browser, working, *people, secrets["password typed by a host"]
        )

    return type_in


def every_answer(api: httpx.Client, principal: Principal, run_ids: list[str]) -> Places:
    """Return what REST and MCP answer about the runs, by route and tool."""
    paths = ["runs", "sessions", "tasks", "audit", "targets", "webhooks", "tools", "plugin/clients"]
    places: Places = {f"GET /{path}": api.get(f"/api/v1/{path}").text for path in paths}
    for task_id in Task.objects.values_list("id", flat=True):
        for part in ("", "/messages", "/events"):
            places[f"GET /tasks/ID{part}"] = api.get(f"/api/v1/tasks/{task_id}{part}").text
    host = StdioHost(PrincipalTransport(principal))
    try:
        for run_id in run_ids:
            for part in ("", "/events", "/artifacts", "/evidence?contents=true"):
                text = api.get(f"/api/v1/runs/{run_id}{part}").text
                text += _contents(text) if "evidence" in part else ""
                name = f"GET /runs/ID{part.partition('?')[0]}"
                places[name] = str(places.get(name, "")) + text
            for tool in ("get_task_run", "subscribe_task_run_events"):
                answer = str(host.call(tool, {"runId": run_id}))
                places[f"MCP {tool}"] = str(places.get(f"MCP {tool}", "")) + answer
    finally:
        host.close()
    return places


def every_stream(api: httpx.Client, web: str, token: str, run_ids: list[str]) -> Places:
    """Return what event streams and WebSockets send about the runs and tasks."""
    places: Places = {}
    sse = {"Accept": "text/event-stream"}
    of_runs = [api.get(f"/api/v1/runs/{run_id}/events", headers=sse).text for run_id in run_ids]
    assert all("data: " in text for text in of_runs)
    places["stream of a run"] = "\n".join(of_runs)
    for task_id in Task.objects.values_list("id", flat=True):
        path = f"/api/v1/tasks/{task_id}/events"
        last = api.get(path).json()["events"][-1]["seq"]
        with api.stream("GET", path, headers=sse) as response:
            lines: list[str] = []
            for line in response.iter_lines():
                lines.append(line)
                if line.startswith("data: ") and orjson.loads(line[6:])["seq"] == last:
                    break
            places["stream of a task"] = "\n".join(lines)
        with open_task_socket(web, task_id, token=token) as task_socket:
            task_socket.send({"v": 1, "type": "ping", "id": "p"})
            frames = task_socket.receive_until(lambda frame: frame["type"] == "pong")
            assert len(frames) > 1
            places["WebSocket of a task"] = orjson.dumps(frames)
    return places


def pair_paired_browser(web: str, principal: Principal) -> dict[str, str]:
    """Pair a browser, which comes back with its secret; return its secrets."""
    ticket = create_ticket(principal=principal, name="b")["ticket"]
    with pair_browser(web, ticket) as browser:
        browser.sync(tabs=[tab(1)])
        secrets = {"pairing ticket": ticket, "secret of a browser": browser.session["secret"]}
        client_id = browser.session["clientId"]
    with open_browser(web) as browser:
        browser.activate(clientId=client_id, secret=secrets["secret of a browser"])
        secrets["later secret of a browser"] = browser.session["secret"]
        browser.sync(tabs=[tab(1)])
    return secrets


def every_page_of(superuser_client: Client, run_ids: list[str]) -> Places:
    """Return the pages of the admin that show the runs, and their export."""
    pages = "".join(every_page(superuser_client, run_id) for run_id in run_ids)
    for row in PluginClient.objects.all():
        page = superuser_client.get(f"/admin/runners/pluginclient/{row.pk}/change/")
        assert page.status_code == 200
        pages += page.content.decode()
    exported = b"".join(superuser_client.get("/admin/runs/run/export/"))
    return {"pages of the admin": pages, "CSV of the runs": exported}


def backed_up(folder: Path) -> Places:
    """Create a backup and return its files."""
    lines: list[str] = []
    create_backup(folder, with_keys=False, with_artifacts=True, report=lines.append)
    return files_below("backup", folder)


def _contents(evidence: str) -> str:
    """Return the contents of the artifacts in a run's evidence, decoded."""
    records = [orjson.loads(line) for line in evidence.splitlines()]
    data = [base64.b64decode(one["data"]) for one in records if one["type"] == "content"]
    return b"".join(data).decode(errors="replace")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_canary_is_where_no_secret_may_be(
    model: ModelServer,
    agent_settings: Any,
    submit_login: Callable[..., Any],
    make_webhook: Callable[..., dict[str, Any]],
    worker: WorkerProcess,
    in_background: Callable[[Callable[[], object]], Any],
    site: Site,
    api: httpx.Client,
    web: str,
    token: str,
    superuser_client: Client,
    principal: Principal,
    type_passwords: Callable[[dict[str, str]], str],
    settings: Any,
    tmp_path: Path,
) -> None:
    settings.LEASE_BEAT_S, settings.POLL_S = 0.1, 60
    secrets = {kind: f"canary-{n}-7f3a91c2-{kind[:3]}" for n, kind in enumerate(PLANTED)}
    key = secrets["model API key"]
    agent_settings.LLM = replace(agent_settings.LLM, api_key=key)
    secrets["API token"] = token
    secrets["webhook secret"] = make_webhook()["secret"]
    goal_url = f"{site.url('/reports')}?n=1&access_token="
    with collect_logs() as log:
        submit_login(password=secrets["secret input"], username="canary-user-5521", path="/leaky")
        worker.work()
        submit_login()
        worker.work()
        batch = batch_of_urls(site, secrets["URL credential"], principal)
        working = in_background(worker.work)
        wait_until(lambda: RunStep.objects.filter(run_id=batch, owner="w1").exists())
        with second_worker() as helping:
            helping.work()
        working.join(300)
        assert RunStep.objects.filter(run_id=batch, owner="w2").exists()
        model.script = [
            Turn(key, [Call("task_start", {"url": f"{goal_url}***"}, "t1")]),
            complete(f"{goal_url}***: {secrets['URL in a goal']} {key}"),
        ]
        message = {"message": f"Read {goal_url}{secrets['URL in a goal']} and report."}
        assert api.post("/api/v1/tasks", json=message).status_code in (201, 202)
        worker.work()
        requests = type_passwords(secrets)
        answers = run_on_echoing_runner(api, worker, principal, secrets["target token"])
        chat = api.post("/api/v1/chat", json=RISKY).json()
        secrets["confirm token"] = chat["trace"]["high_risk_confirmation"]["confirm_token"]
        deliver()
        secrets |= pair_paired_browser(web, principal)
        secrets["session cookie"] = _longest_cookie()
        run_ids = list(Run.objects.values_list("id", flat=True))
        places = every_column() | every_answer(api, principal, run_ids)
        places |= every_stream(api, web, token, run_ids)
        places |= every_page_of(superuser_client, run_ids) | backed_up(tmp_path / "backup")
    places |= {"calls": answers, "requests": requests, "log and Redis": "\n".join(log)}
    places |= files_below("home", Path(settings.CONTINUITY_HOME))
    found = sorted(set(found_in(secrets, places)))
    allowed = allowed_places()
    assert set(allowed) - {"kind"} == set(secrets)
    assert [one for one in found if not _is_allowed(one[1], allowed[one[0]])] == []


def _is_allowed(place: str, allowed: tuple[str, ...]) -> bool:
    """Return whether a place begins with an allowed one; the database file has what its columns
    have.
    """
    is_copy = place.startswith(("backup: database", "home: test.sqlite3"))
    return place.startswith(allowed) or (is_copy and any("." in one for one in allowed))


def _longest_cookie() -> str:
    states = [read_state(session) for session in BrowserSession.objects.all()]
    cookies = [one for state in states if state for one in state.storage["cookies"]]
    return max((str(cookie["value"]) for cookie in cookies), key=len)
