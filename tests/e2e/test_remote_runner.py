"""Test S3 §9 end to end: a real docker-runner, the whole stack, an agent's host over MCP, a person
at a browser. A call runs on the runner, its output streams, and the audit page lists it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from mcp import Client

from runners.invocation.event_loop import LoopThread
from tests.support.admin.visitor import Visitor, open_visitor
from tests.support.installation.mcp_process import call, connected
from tests.support.installation.temporary_home import TemporaryHome, temporary_home
from tests.support.rest.rest import bearer, json_of
from tests.support.runners.docker_runner_process import (
    TIMEOUT_S,
    best_isolation,
    start_docker_runner,
)
from tests.support.runners.tcp_relay import Relay, relay_to

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]
TOKEN = "a-token-of-the-runner-0123"
ECHOES = 60
# The command continues once the test has read its first output.
COMMAND = "echo one; until [ -e go ]; do sleep 0.05; done; echo two; sleep 0.1; echo three"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass(frozen=True, slots=True)
class Site:
    """What the test uses: `relay` records what reaches the runner, which works in `folder`."""

    home: TemporaryHome
    address: str
    folder: Path
    relay: Relay
    person: Visitor
    rest: httpx.Client


@pytest.fixture
def site(tmp_path: Path, browser_loop: LoopThread) -> Iterator[Site]:
    """Start `manage.py up` and `manage.py docker_runner`, and sign in by the admin's link."""
    (folder := tmp_path / "hands").mkdir()
    isolation = ("--isolation", best_isolation(folder))
    with ExitStack() as stack:
        runner = stack.enter_context(
            start_docker_runner(folder, *isolation, CONTINUITY_RUNNER_TOKEN=TOKEN)
        )
        relay = stack.enter_context(relay_to(runner.port))
        egress = {"CONTINUITY_EGRESS_ALLOW": f"127.0.0.1:{relay.port}"}
        home = stack.enter_context(temporary_home(tmp_path / "home", **egress))
        address = home.start("up").wait_until_ready()
        person = stack.enter_context(open_visitor(browser_loop, address))
        person.sign_in(urlsplit(home.run("admin_link").stdout.strip()).path)
        token = home.run("create_token", "a program").stdout.strip()
        rest = httpx.Client(base_url=address, headers=bearer(token), timeout=TIMEOUT_S)
        yield Site(home, address, folder, relay, person, stack.enter_context(rest))


def make_runner(site: Site) -> str:
    """Create a target for the runner in the admin's form, probe it, and return the target's id."""
    person = site.person
    person.open("/admin/runners/executiontarget/")
    person.click("a:has-text('New runner')")
    person.fill("input[name=name]", "The builder")
    person.fill("input[name=endpoint]", site.relay.endpoint)
    person.fill("input[name=auth_token]", TOKEN)
    person.fill("input[name=timeout_ms]", "180000")
    person.click("button:has-text('Create target')")
    person.click("button:has-text('Probe')")
    person.wait_for("text=The runner answers and offers 8 tools.")
    assert TOKEN not in person.do(person.page.content())
    (target_id,) = [update for update in person.page.url.split("/") if update.startswith("target_")]
    return target_id


async def submit_calls(agent: Client, target_id: str, *calls: tuple[str, dict[str, Any]]) -> str:
    """Submit a run with calls on the runner, as an agent does, and return the run's id."""
    inputs = {
        "calls": [{"name": name, "args": args, "targetId": target_id} for name, args in calls]
    }
    run = await call(
        agent,
        "run_task_template",
        templateId="call_tools",
        inputs=inputs,
        options={"mode": "async"},
    )
    return str(run["runId"])


async def wait_for(agent: Client, run_id: str) -> dict[str, Any]:
    """Wait until the run has ended or waits for a person, and return it."""
    return await call(agent, "wait_task_run", runId=run_id, waitMs=55_000)


async def until_update(agent: Client, run_id: str) -> None:
    """Wait until the run has published a part of its tool's output."""
    types, after = [], 0
    while "tool.update" not in types:
        page = await call(
            agent, "subscribe_task_run_events", runId=run_id, after=after, waitMs=20_000
        )
        assert not page["terminal"], page
        types, after = [event["type"] for event in page["events"]], page["lastSeq"]


@pytest.mark.slow
async def test_an_agents_calls_run_on_a_remote_runner(site: Site) -> None:
    target_id = make_runner(site)
    async with connected(site.home.env) as agent:
        await check_confirmation(site, agent, target_id)
        target = ("--id", target_id, "--endpoint", site.relay.endpoint)
        allow = ("--allow", "bash.exec,echo", "--reason", "test")
        assert site.home.run("add_target", *target, *allow).stdout.strip() == target_id
        await check_streamed_output(site, agent, target_id)
        calls = [("echo", {"text": f"no {number}"}) for number in range(ECHOES)]
        ended = await wait_for(agent, await submit_calls(agent, target_id, *calls))
        assert ended["resultSummary"] == f"{ECHOES} of {ECHOES} calls succeeded."
    check_direct_call(site, target_id)
    check_audit_page(site.person)


async def check_confirmation(site: Site, agent: Client, target_id: str) -> None:
    run_id = await submit_calls(agent, target_id, ("bash.exec", {"cmd": "printf hello | tee made"}))
    waiting = await wait_for(agent, run_id)
    assert (waiting["status"], waiting["waitingFor"]["type"]) == ("running", "confirmation")
    assert site.relay.count_received(b"bash.exec") == 0
    person = site.person
    person.open("/admin/")
    person.click("a:has-text('inbox')")
    person.click("#result_list a:has-text('waiting')")
    person.wait_for("pre:has-text('printf hello | tee made')")
    person.click("button:has-text('Confirm')")
    person.wait_for(".cty-big [data-tone=succeeded]")
    ended = await wait_for(agent, run_id)
    (result,) = ended["result"]["results"]
    assert (result["ok"], result["output"]["stdout"]) == (True, "hello"), ended
    assert (site.folder / "made").read_text() == "hello"
    assert site.relay.count_received(b"bash.exec") == 1


async def check_streamed_output(site: Site, agent: Client, target_id: str) -> None:
    run_id = await submit_calls(agent, target_id, ("bash.exec", {"cmd": COMMAND}))
    await until_update(agent, run_id)
    assert (await call(agent, "get_task_run", runId=run_id))["status"] == "running"
    site.person.open(f"/admin/runs/run/{run_id}/change/")
    site.person.wait_for("text=output one")
    (site.folder / "go").touch()
    assert (await wait_for(agent, run_id))["status"] == "succeeded"
    page = await call(agent, "subscribe_task_run_events", runId=run_id, after=0)
    updates = [update["data"] for update in page["events"] if update["type"] == "tool.update"]
    assert "".join(update["delta"] for update in updates) == "one\ntwo\nthree\n"
    assert sorted(update["at"] for update in updates) == [update["at"] for update in updates]
    assert page["events"][-1]["type"] == "run.succeeded"


def check_direct_call(site: Site, target_id: str) -> None:
    body = {"args": {"cmd": "printf hello"}, "targetId": target_id}
    answer = json_of(site.rest.post("/api/v1/tools/bash.exec/call", json=body))
    assert answer["output"]["stdout"] == "hello"
    denied = site.rest.post("/api/v1/tools/math.add/call", json={**body, "args": {"a": 1, "b": 2}})
    assert (denied.status_code, denied.json()["errorCode"]) == (403, "POLICY_DENIED")
    assert site.relay.count_received(b"math.add") == 0


def check_audit_page(person: Visitor) -> None:
    rows = "#result_list tbody tr"
    person.open("/admin/decisions/auditentry/")
    person.fill("#searchbar", "echo")
    person.do(person.page.press("#searchbar", "Enter"))
    person.wait_for("text=Rows 1 – 50")
    first = person.texts(rows)
    assert all("echo" in row for row in first)
    person.click(".cty-pages a:has-text('Older')")
    person.wait_for("text=Rows 51 – 100")
    person.click(".cty-pages a:has-text('Older')")
    person.wait_for("text=Rows 101")
    last = person.texts(rows)
    # Two for each call, and one for the rule that allows it.
    assert len(last) == 2 * ECHOES + 1 - 100
    assert "policy_rule.created" in last[-1]
    person.click("text=Filters")
    person.click("a[title='policy.denied']")
    person.do(person.page.wait_for_url("**action=policy.denied**"))
    person.open("/admin/decisions/auditentry/?action=policy.denied")
    (denied,) = person.texts(rows)
    assert "math.add" in denied
