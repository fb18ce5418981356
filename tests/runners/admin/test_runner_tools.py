"""The tools of a runner, on its page in the admin site."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from decisions.identity.principals import Principal
from runners.models import ExecutionTarget
from runners.targets.targets import TargetFields, allow_on_target, create_target_row
from tests.support.runners.stub_runner import RunnerConnection, stub_runner

pytestmark = pytest.mark.usefixtures("open_loopback")

EVIL = "<script>alert(1)</script>"
PUBLISHED = {
    "name": "echo",
    "description": EVIL,
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
}


def publish_tools(connection: RunnerConnection) -> None:
    connection.answer(json.dumps({"tools": [PUBLISHED]}).encode())


@pytest.fixture
def target(principal: Principal) -> ExecutionTarget:
    """Create a runner whose config names a tool, and a rule that allows another."""
    fields = TargetFields(
        principal.tenant_id,
        principal.workspace_id,
        "builder",
        "docker-runner",
        config={"tools": [{"name": "ls", "description": "List."}]},
    )
    target = create_target_row(fields, actor="test")
    allow_on_target(target, ["deploy", "*"], actor="test", reason="test")
    return target


def page(superuser_client: Client, target: ExecutionTarget) -> str:
    return superuser_client.get(
        f"/admin/runners/executiontarget/{target.id}/change/"
    ).content.decode()


def test_a_page_lists_the_tools_of_a_runner_and_their_source(
    superuser_client: Client, target: ExecutionTarget
) -> None:
    before = page(superuser_client, target)
    assert ">config<" in before
    assert ">policy rule<" in before
    with stub_runner(publish_tools) as runner:
        ExecutionTarget.objects.update(endpoint=runner.url)
        url = f"/admin/runners/executiontarget/{target.id}/probe/"
        probed = superuser_client.post(url, follow=True).content.decode()
    assert "The runner answers and offers 1 tool." in probed
    assert ">runner<" in probed
    assert EVIL not in probed
    assert "&lt;script&gt;alert(1)" in probed


def test_a_runner_that_cannot_list_its_tools_shows_the_reason(
    superuser_client: Client, target: ExecutionTarget
) -> None:
    with stub_runner(lambda connection: connection.answer(b"<html>")) as runner:
        ExecutionTarget.objects.update(endpoint=runner.url)
        url = f"/admin/runners/executiontarget/{target.id}/probe/"
        probed = superuser_client.post(url, follow=True).content.decode()
    assert "The runner answers. Its list of tools is not valid JSON" in probed
