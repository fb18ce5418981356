"""Runners in the admin site: created, changed and probed; their tokens never displayed."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runners.models import ExecutionTarget
from runners.targets.runner_endpoint import runner_of
from runners.targets.targets import Caller
from tests.services import free_port
from tests.support.stub_runner import responding_with, stub_runner

pytest_plugins = ["tests.support.admin_fixtures", "tests.support.runner_fixtures"]
pytestmark = pytest.mark.usefixtures("open_loopback")

LIST = "/admin/runners/executiontarget/"
ENDPOINT = "http://127.0.0.1:18081/execute"


@pytest.fixture
def filled_in(principal: Principal) -> dict[str, Any]:
    """Return the form data of a runner."""
    place = f"{principal.tenant_id}|{principal.workspace_id}"
    return {
        "name": "builder",
        "workspace": place,
        "endpoint": ENDPOINT,
        "auth_token": "s3cret-token",
        "timeout_ms": "60000",
        "on_unreachable": "deny",
        "enabled": "on",
    }


def make(superuser_client: Client, filled_in: dict[str, Any], **more: Any) -> ExecutionTarget:
    assert superuser_client.post(LIST + "new-runner/", {**filled_in, **more}).status_code == 302
    return ExecutionTarget.objects.get()


def test_a_runner_created_here_is_called_as_configured(
    superuser_client: Client, filled_in: dict[str, Any], principal: Principal
) -> None:
    runner = runner_of(make(superuser_client, filled_in), Caller.of(principal))
    assert (runner.endpoint, runner.auth_token, runner.timeout_ms) == (
        ENDPOINT,
        "s3cret-token",
        60_000,
    )


def test_its_token_is_on_no_page(superuser_client: Client, filled_in: dict[str, Any]) -> None:
    runner = make(superuser_client, filled_in)
    entry = AuditEntry.objects.get(action="target.created")
    pages = [
        LIST,
        f"{LIST}{runner.id}/change/",
        f"{LIST}{runner.id}/edit/",
        f"/admin/decisions/auditentry/{entry.id}/change/",
    ]
    answers = [superuser_client.get(page) for page in pages]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert not [answer for answer in answers if b"s3cret" in answer.content]
    assert (
        b"s3cret"
        not in superuser_client.post(f"{LIST}{runner.id}/edit/", {**filled_in, "name": ""}).content
    )


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"auth_token": ""}, "s3cret-token"),
        ({"auth_token": "another"}, "another"),
        ({"auth_token": "", "no_token": "on"}, None),
    ],
)
def test_a_change_keeps_the_token_unless_a_new_one_is_entered(
    superuser_client: Client,
    filled_in: dict[str, Any],
    principal: Principal,
    change: dict[str, Any],
    kept: str | None,
) -> None:
    runner = make(superuser_client, filled_in)
    answer = superuser_client.post(
        f"{LIST}{runner.id}/edit/", {**filled_in, **change, "version": 1}
    )
    assert answer.status_code == 302
    now = ExecutionTarget.objects.get()
    assert (now.version, runner_of(now, Caller.of(principal)).auth_token) == (2, kept)


@pytest.mark.parametrize(
    "wrong", [{"endpoint": "http://10.0.0.1/"}, {"timeout_ms": "0"}, {"auth_token": "a b"}]
)
def test_an_invalid_runner_is_rejected_in_the_form(
    superuser_client: Client, filled_in: dict[str, Any], wrong: dict[str, str]
) -> None:
    answer = superuser_client.post(LIST + "new-runner/", {**filled_in, **wrong})
    assert b"cty-error" in answer.content
    assert not ExecutionTarget.objects.exists()


def test_a_probe_reports_whether_the_runner_answers_and_when_it_was_last_seen(
    superuser_client: Client, filled_in: dict[str, Any]
) -> None:
    with stub_runner(responding_with({"ok": True})) as stub:
        runner = make(superuser_client, filled_in, endpoint=stub.url)
        page = f"{LIST}{runner.id}/change/"
        assert "never" in superuser_client.get(page).content.decode()
        answer = superuser_client.post(f"{LIST}{runner.id}/probe/", follow=True).content.decode()
    assert "The runner answers." in answer
    assert ExecutionTarget.objects.get().last_seen_at is not None
    assert AuditEntry.objects.get(action="target.probed").actor == "admin:boss"


def test_a_failed_probe_is_shown_in_the_list_too(
    superuser_client: Client, filled_in: dict[str, Any]
) -> None:
    runner = make(superuser_client, filled_in, endpoint=f"http://127.0.0.1:{free_port()}/execute")
    answer = superuser_client.post(f"{LIST}{runner.id}/probe/", follow=True).content.decode()
    assert "No answer. No server accepts connections at the runner" in answer
    assert "no answer" in superuser_client.get(LIST).content.decode()


def test_probing_needs_the_permission_to_change_targets(
    superuser_client: Client, staff_client: Callable[..., Client], filled_in: dict[str, Any]
) -> None:
    runner = make(superuser_client, filled_in)
    reader = staff_client("runners.view_executiontarget")
    assert b"/probe/" not in reader.get(f"{LIST}{runner.id}/change/").content
    assert reader.post(f"{LIST}{runner.id}/probe/").status_code == 403
    assert superuser_client.get(f"{LIST}{runner.id}/probe/").status_code == 405
    assert not AuditEntry.objects.filter(action="target.probed").exists()


def test_the_form_of_a_new_runner_has_no_option_to_remove_a_token(
    superuser_client: Client, filled_in: dict[str, Any]
) -> None:
    new = superuser_client.get(LIST + "new-runner/").content.decode()
    assert "without a token" not in new
    assert "as it was" not in new
    runner = make(superuser_client, filled_in)
    known = superuser_client.get(f"{LIST}{runner.id}/edit/").content.decode()
    assert "Call without a token" in known
    assert "Empty: unchanged." in known


def test_the_page_of_a_runner_shows_what_policy_allows_and_links_to_a_rule(
    superuser_client: Client, filled_in: dict[str, Any]
) -> None:
    tools = [{"name": name} for name in ("bash.exec", "echo", "text.upper")]
    runner = make(superuser_client, filled_in)
    ExecutionTarget.objects.update(config={**runner.config, "tools": tools})
    page = f"{LIST}{runner.id}/change/"
    assert policy_of(superuser_client, page) == ["needs a confirmation", "denied", "denied"]
    link = re.findall(
        r'href="([^"]*policyrule/new/[^"]*tool=echo[^"]*)"', told(superuser_client, page)
    )[0]
    form = superuser_client.get(html.unescape(link)).context["form"]
    says = {name: form[name].value() or "" for name in form.fields}
    assert superuser_client.post("/admin/decisions/policyrule/new/", says).status_code == 302
    assert policy_of(superuser_client, page) == ["needs a confirmation", "allowed", "denied"]


def told(superuser_client: Client, page: str) -> str:
    return superuser_client.get(page).content.decode()


def policy_of(superuser_client: Client, page: str) -> list[str]:
    """Return the policy column of a runner's page for its tools, in their order."""
    return re.findall(
        r">(allowed|denied|needs a confirmation)</span>", told(superuser_client, page)
    )


def test_the_breadcrumb_shows_an_id_unchanged(
    superuser_client: Client, filled_in: dict[str, Any]
) -> None:
    runner = make(superuser_client, filled_in)
    ExecutionTarget.objects.update(name="builder")
    way = re.findall(
        r"tracking-tight\">\s*([^<]+?)\s*<", told(superuser_client, f"{LIST}{runner.id}/change/")
    )
    assert way[-2:] == ["Targets", "builder"]
