"""What a person approves is what is done: every surface shows a call whole, and an answer names the
digest of what was shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from django.test import Client

from decisions.models import AuditEntry, Confirmation, Decision
from tests.support.decisions.deciders import SURFACES, Decider
from tests.support.runners.runner_fixtures import MakeRunner

pytestmark = pytest.mark.usefixtures("open_loopback", "no_home")
BLANKS = 70_000


def without_line(page: str) -> str:
    """Return a page without the request's line, which masks what looks like a secret."""
    return "\n".join(line for line in page.splitlines() if " · #" not in line)


@pytest.fixture
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command use the test's database."""
    monkeypatch.setattr("runs.management.commands.confirm.prepare_home", lambda: None)


@pytest.fixture
def deciders(superuser_client: Client) -> list[Decider]:
    """Return a person at each surface."""
    return [Decider(surface, superuser_client) for surface in SURFACES]


class Agent:
    """A caller of bash.exec over REST."""

    def __init__(self, api: httpx.Client) -> None:
        self.api = api

    def post(self, args: Mapping[str, Any], key: str = "k") -> httpx.Response:
        body = {"args": args, "idempotencyKey": key}
        return self.api.post("/api/v1/tools/bash.exec/call", json=body)

    def ask(self, args: Mapping[str, Any], key: str = "k") -> int:
        """Make a call that waits for a person; return the id of its decision."""
        response = self.post(args, key)
        assert response.status_code == 202, response.text
        number: int = response.json()["details"]["decisionId"]
        return number


@pytest.fixture
def agent(api: httpx.Client, make_runner: MakeRunner) -> Agent:
    make_runner(is_default=True)
    return Agent(api)


def status_of(number: int) -> str:
    return Confirmation.objects.get(decision_id=number).status


@pytest.mark.parametrize(
    ("args", "done"),
    [
        ({"cmd": "echo build ok; cookie=1; rm -f victim; echo done"}, "cookie=1; rm -f victim;"),
        ({"cmd": """echo deploy; password='a'; token="$(rm -f victim)\""""}, "$(rm -f victim)"),
        ({"cmd": "echo http://u:$(rm${IFS}-f${IFS}victim)@host/"}, "$(rm${IFS}-f${IFS}victim)"),
        ({"cmd": "echo build ok; eval $TOKEN", "env": {"TOKEN": "rm -f victim"}}, "rm -f victim"),
        ({"cmd": f"echo tests pass{' ' * BLANKS}; rm -f victim"}, f"⟨SPACE × {BLANKS}⟩; rm -f"),
    ],
    ids=["cookie", "password", "address", "environment", "blanks"],
)
def test_a_person_sees_the_command_that_is_run(
    agent: Agent, deciders: list[Decider], args: dict[str, Any], done: str
) -> None:
    number = agent.ask(args)
    for decider in deciders:
        seen = decider.see(number).text
        assert done in seen, decider.surface
        assert "***" not in without_line(seen), decider.surface


def test_a_long_command_is_confirmed_with_the_digest_of_its_last_page_alone(
    agent: Agent, deciders: list[Decider]
) -> None:
    words = "".join(f"echo {number};" for number in range(5_000))
    numbers = [agent.ask({"cmd": f"{words} rm -f victim"}, str(n)) for n in range(len(deciders))]
    digests = []
    for decider, number in zip(deciders, numbers, strict=True):
        seen = decider.see(number)
        assert len(seen.pages) > 3, decider.surface
        assert "rm -f victim" in seen.pages[-1]
        assert [bool(digest) for digest in seen.digests] == [False] * (len(seen.pages) - 1) + [True]
        digests.append(seen.digests[-1])
    for decider, number, other in zip(deciders, numbers, reversed(digests), strict=True):
        for wrong in ("", "0" * 64, other if other != decider.see(number).digests[-1] else ""):
            decider.decide(number, "confirm", wrong)
            assert status_of(number) == "waiting", decider.surface
    for decider, number, digest in zip(deciders, numbers, digests, strict=True):
        decider.decide(number, "confirm", digest)
        assert status_of(number) == "confirmed", decider.surface


def test_a_call_can_be_refused_without_a_digest(agent: Agent, deciders: list[Decider]) -> None:
    for decider in deciders:
        number = agent.ask({"cmd": "true"}, decider.surface)
        decider.decide(number, "refuse", "")
        assert status_of(number) == "refused", decider.surface


def test_a_call_that_cannot_be_shown_whole_is_denied_with_the_reason(agent: Agent) -> None:
    response = agent.post({"cmd": "x" * 300_000})
    assert (response.status_code, response.json()["details"]["because"]) == (403, "hidden")
    assert "at most 262144 are shown" in response.json()["message"]
    assert not Decision.objects.exists()
    denied = AuditEntry.objects.get(action="policy.denied")
    assert denied.metadata["because"] == "hidden"


def test_repeated_fields_are_refused_at_the_door(agent: Agent) -> None:
    body = '{"args": {"cmd": "echo ok", "cmd": "rm -f victim"}}'
    headers = {"Content-Type": "application/json"}
    response = agent.api.post("/api/v1/tools/bash.exec/call", content=body, headers=headers)
    assert response.status_code == 400
    assert "duplicate key" in response.json()["message"]


def test_records_of_the_call_keep_masks_and_the_exact_arguments_are_encrypted(
    agent: Agent,
) -> None:
    agent.ask({"cmd": "echo; cookie=rm-victim"})
    decision = Decision.objects.get()
    assert decision.arguments == {"cmd": "echo; ***"}
    assert b"victim" not in bytes(decision.sealed_arguments or b"")
    assert "victim" not in str([*AuditEntry.objects.values()])


def test_a_user_who_may_not_decide_sees_the_masked_arguments(
    agent: Agent, staff_client: Any
) -> None:
    number = agent.ask({"cmd": "echo; cookie=rm-victim"})
    viewer = staff_client("decisions.view_decision")
    page = viewer.get(f"/admin/decisions/decision/{number}/change/").content.decode()
    assert "echo; ***" in page
    assert "rm-victim" not in page
    assert 'name="shown"' not in page
