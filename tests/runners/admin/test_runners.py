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
from tests.support.runners.stub_runner import responding_with, stub_runner

pytestmark = pytest.mark.usefixtures("open_loopback")

LIST = "/admin/runners/executiontarget/"
ENDPOINT = "http://127.0.0.1:18081/execute"


@pytest.fixture
def form_data(principal: Principal) -> dict[str, Any]:
    """Return the form data of a runner."""
    workspace = f"{principal.tenant_id}|{principal.workspace_id}"
    return {
        "name": "builder",
        "workspace": workspace,
        "endpoint": ENDPOINT,
        "auth_token": "s3cret-token",
        "timeout_ms": "60000",
        "on_unreachable": "deny",
        "enabled": "on",
    }


def create_runner(
    superuser_client: Client, form_data: dict[str, Any], **more: Any
) -> ExecutionTarget:
    assert superuser_client.post(LIST + "new-runner/", {**form_data, **more}).status_code == 302
    return ExecutionTarget.objects.get()


def test_a_runner_created_here_is_called_as_configured(
    superuser_client: Client, form_data: dict[str, Any], principal: Principal
) -> None:
    runner = runner_of(create_runner(superuser_client, form_data), Caller.of(principal))
    assert (runner.endpoint, runner.auth_token, runner.timeout_ms) == (
        ENDPOINT,
        "s3cret-token",
        60_000,
    )


def test_its_token_is_on_no_page(superuser_client: Client, form_data: dict[str, Any]) -> None:
    runner = create_runner(superuser_client, form_data)
    entry = AuditEntry.objects.get(action="target.created")
    pages = [
        LIST,
        f"{LIST}{runner.id}/change/",
        f"{LIST}{runner.id}/edit/",
        f"/admin/decisions/auditentry/{entry.id}/change/",
    ]
    responses = [superuser_client.get(page) for page in pages]
    assert [response.status_code for response in responses] == [200] * 4
    assert not [response for response in responses if b"s3cret" in response.content]
    assert (
        b"s3cret"
        not in superuser_client.post(f"{LIST}{runner.id}/edit/", {**form_data, "name": ""}).content
    )


@pytest.mark.parametrize(
    ("change", "expected_token"),
    [
        ({"auth_token": ""}, "s3cret-token"),
        ({"auth_token": "another"}, "another"),
        ({"auth_token": "", "no_token": "on"}, None),
    ],
)
def test_a_change_keeps_the_token_unless_a_new_one_is_entered(
    superuser_client: Client,
    form_data: dict[str, Any],
    principal: Principal,
    change: dict[str, Any],
    expected_token: str | None,
) -> None:
    runner = create_runner(superuser_client, form_data)
    response = superuser_client.post(
        f"{LIST}{runner.id}/edit/", {**form_data, **change, "version": 1}
    )
    assert response.status_code == 302
    target = ExecutionTarget.objects.get()
    assert (target.version, runner_of(target, Caller.of(principal)).auth_token) == (
        2,
        expected_token,
    )


@pytest.mark.parametrize(
    "wrong", [{"endpoint": "http://10.0.0.1/"}, {"timeout_ms": "0"}, {"auth_token": "a b"}]
)
def test_an_invalid_runner_is_rejected_in_the_form(
    superuser_client: Client, form_data: dict[str, Any], wrong: dict[str, str]
) -> None:
    response = superuser_client.post(LIST + "new-runner/", {**form_data, **wrong})
    assert b"cty-error" in response.content
    assert not ExecutionTarget.objects.exists()


def test_a_probe_reports_whether_the_runner_answers_and_when_it_was_last_seen(
    superuser_client: Client, form_data: dict[str, Any]
) -> None:
    with stub_runner(responding_with({"ok": True})) as stub:
        runner = create_runner(superuser_client, form_data, endpoint=stub.url)
        page = f"{LIST}{runner.id}/change/"
        assert "never" in superuser_client.get(page).content.decode()
        text = superuser_client.post(f"{LIST}{runner.id}/probe/", follow=True).content.decode()
    assert "The runner answers." in text
    assert ExecutionTarget.objects.get().last_seen_at is not None
    assert AuditEntry.objects.get(action="target.probed").actor == "admin:boss"


def test_a_failed_probe_is_shown_in_the_list_too(
    superuser_client: Client, form_data: dict[str, Any]
) -> None:
    runner = create_runner(
        superuser_client, form_data, endpoint=f"http://127.0.0.1:{free_port()}/execute"
    )
    text = superuser_client.post(f"{LIST}{runner.id}/probe/", follow=True).content.decode()
    assert "No answer. No server accepts connections at the address" in text
    assert "no answer" in superuser_client.get(LIST).content.decode()


def test_probing_needs_the_permission_to_change_targets(
    superuser_client: Client, staff_client: Callable[..., Client], form_data: dict[str, Any]
) -> None:
    runner = create_runner(superuser_client, form_data)
    reader = staff_client("runners.view_executiontarget")
    assert b"/probe/" not in reader.get(f"{LIST}{runner.id}/change/").content
    assert reader.post(f"{LIST}{runner.id}/probe/").status_code == 403
    assert superuser_client.get(f"{LIST}{runner.id}/probe/").status_code == 405
    assert not AuditEntry.objects.filter(action="target.probed").exists()


def test_the_form_of_a_new_runner_has_no_option_to_remove_a_token(
    superuser_client: Client, form_data: dict[str, Any]
) -> None:
    new = superuser_client.get(LIST + "new-runner/").content.decode()
    assert "without a token" not in new
    assert "as it was" not in new
    runner = create_runner(superuser_client, form_data)
    existing = superuser_client.get(f"{LIST}{runner.id}/edit/").content.decode()
    assert "Call without a token" in existing
    assert "Empty: unchanged." in existing


def test_the_page_of_a_runner_shows_what_policy_allows_and_links_to_a_rule(
    superuser_client: Client, form_data: dict[str, Any]
) -> None:
    tools = [{"name": name} for name in ("bash.exec", "echo", "text.upper")]
    runner = create_runner(superuser_client, form_data)
    ExecutionTarget.objects.update(config={**runner.config, "tools": tools})
    page = f"{LIST}{runner.id}/change/"
    assert policy_of(superuser_client, page) == ["needs a confirmation", "denied", "denied"]
    link = re.findall(
        r'href="([^"]*policyrule/new/[^"]*tool=echo[^"]*)"', page_text(superuser_client, page)
    )[0]
    form = superuser_client.get(html.unescape(link)).context["form"]
    assert form["verdict"].value() is None
    form_values = {name: form[name].value() or "" for name in form.fields}
    form_values |= {"verdict": "allow", "reason": "test"}
    review = superuser_client.post("/admin/decisions/policyrule/new/", form_values)
    form_values["shown"] = review.context["digest"]
    assert superuser_client.post("/admin/decisions/policyrule/new/", form_values).status_code == 302
    assert policy_of(superuser_client, page) == ["needs a confirmation", "allowed", "denied"]


def page_text(superuser_client: Client, page: str) -> str:
    return superuser_client.get(page).content.decode()


def policy_of(superuser_client: Client, page: str) -> list[str]:
    """Return the policy column of a runner's page for its tools, in their order."""
    return re.findall(
        r">(allowed|denied|needs a confirmation)</span>", page_text(superuser_client, page)
    )


def test_the_breadcrumb_shows_an_id_unchanged(
    superuser_client: Client, form_data: dict[str, Any]
) -> None:
    runner = create_runner(superuser_client, form_data)
    ExecutionTarget.objects.update(name="builder")
    breadcrumb = re.findall(
        r"tracking-tight\">\s*([^<]+?)\s*<",
        page_text(superuser_client, f"{LIST}{runner.id}/change/"),
    )
    assert breadcrumb[-2:] == ["Targets", "builder"]
