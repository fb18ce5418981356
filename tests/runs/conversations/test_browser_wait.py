"""What a task in a paired browser waits for, by the call that a person confirms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from decisions.models import Decision
from runs.conversations.browser_wait import waits_of_tasks
from runs.models import Run

PAGE = "Shop, the best, https://me@shop.example:8443/cart?a=1"


@pytest.fixture
def waits(make_run: Callable[..., Run]) -> Callable[[str, Mapping[str, Any]], dict[str, str]]:
    """Return a function that returns what a task waits for whose call a person has to confirm."""

    def wait_of(tool: str, arguments: Mapping[str, Any]) -> dict[str, str]:
        run = make_run(status="running", ready=False, task_id="task_1")
        decision = Decision.objects.create(
            tenant_id=run.tenant_id,
            workspace_id=run.workspace_id,
            principal_id="p",
            kind="step",
            mode="confirm",
            subject_digest="0",
            tool=tool,
            arguments=arguments,
            created_at=datetime.now(UTC),
        )
        waiting = {"type": "confirmation", "decisionId": decision.pk}
        Run.objects.filter(id=run.id).update(waiting_for=waiting)
        return waits_of_tasks(["task_1", "task_2"])["task_1"]

    return wait_of


@pytest.mark.parametrize(
    ("tool", "arguments", "act"),
    [
        ("browser_click", {"element": '[3] button "Buy"'}, "click"),
        ("browser_click", {"submits": "POST https://shop.example/buy"}, "submit"),
        ("browser_click", {"dialog": {"accept": True}}, "dialog"),
        ("browser_type", {"text": "a"}, "type"),
        ("browser_type", {"text": "a", "submit": True}, "submit"),
        ("browser_press_key", {"key": "Enter"}, "key"),
        ("browser_upload", {}, "upload"),
        ("browser_go_back", {}, "act"),
        ("write_file", {}, "call"),
    ],
)
def test_the_act_is_that_of_the_call(
    waits: Callable[..., dict[str, str]], tool: str, arguments: dict[str, Any], act: str
) -> None:
    assert waits(tool, arguments)["act"] == act


def test_host_and_element_are_those_of_the_page_that_was_shown(
    waits: Callable[..., dict[str, str]],
) -> None:
    wait = waits("browser_click", {"page": PAGE, "element": '[3] link "Items" → /items'})
    assert (wait["host"], wait["element"]) == ("shop.example:8443", 'link "Items" → /items')


@pytest.mark.parametrize("page", ["", "Shop, about:blank", "Shop, http://[", "Shop"])
def test_a_page_without_a_host_is_not_named(
    waits: Callable[..., dict[str, str]], page: str
) -> None:
    assert "host" not in waits("browser_click", {"page": page})
