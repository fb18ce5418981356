"""What stands on the pages about a decision: arguments, context, and why a call cannot be shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.test import Client

from decisions.authorization import confirmations
from decisions.authorization.authorize import admit_call, tool_call_request
from decisions.authorization.confirmation_links import confirmation_link
from decisions.authorization.decision_pages import DecisionPage, as_text, decision_page
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.authorization.sealed_arguments import MAX_BYTES, MAX_VALUES, NAME_MAX, open_arguments
from decisions.foundation.errors import ConfirmationRequired, Conflict, NotAsShown, PolicyDenied
from decisions.foundation.presentation.visible_text import as_lines
from decisions.identity.principals import Principal, create_token
from decisions.models import AuditEntry, Confirmation, Decision
from runs.models import Run
from runs.worker.worker import WorkerProcess
from tests.support.decisions.confirmations import CONFIRMER, digest_shown
from tests.support.decisions.continuity import KNOWN_SLOTS
from tests.support.decisions.deciders import text_of
from tests.support.rest.rest import bearer
from tests.support.runners.runner_fixtures import MakeRunner

TOOL = "some_call"


def without_line(page: str) -> str:
    """Return a page without the request's line, which masks what looks like a secret."""
    return "\n".join(line for line in page.splitlines() if " · #" not in line)


@pytest.fixture
def ask(principal: Principal) -> Callable[..., Decision]:
    """Make a call that waits for a person: `ask({"cmd": "ls"})`."""
    create_rule(RuleFields("confirm", tool=TOOL, reason="it is risky"), actor="test")

    def make(args: Mapping[str, Any], **more: Any) -> Decision:
        with pytest.raises(ConfirmationRequired) as required:
            admit_call(tool_call_request(principal, TOOL, args, **more))
        return Decision.objects.get(pk=required.value.details["decisionId"])

    return make


def values(page: DecisionPage) -> dict[str, str]:
    """Return name -> shown text of the values of a page."""
    return {one.name: as_lines(one.parts) for one in page.fragments}


def call(api: httpx.Client, tool: str, args: Mapping[str, Any]) -> None:
    """Make a direct call that waits for a person."""
    response = api.post(f"/api/v1/tools/{tool}/call", json={"args": args})
    assert response.status_code == 202, response.text


def about(page: DecisionPage) -> dict[str, str]:
    return {one.name: one.about for one in page.fragments}


def test_each_value_is_shown_with_its_name_its_type_and_its_length(
    ask: Callable[..., Decision],
) -> None:
    args = {"env": {"A B": "x\ny"}, "items": [1, True, None, [], {}, ""], "wait.ms": 2.5}
    page = decision_page(ask(args))
    assert about(page) == {
        'env["A B"]': "text, 3 characters, 2 lines",
        "items[0]": "number",
        "items[1]": "true or false",
        "items[2]": "nothing",
        "items[3]": "empty list",
        "items[4]": "empty object",
        "items[5]": "text, 0 characters",
        '["wait.ms"]': "number",
    }
    assert values(page)["items[1]"] == "true"


def test_names_of_fields_hide_nothing(ask: Callable[..., Decision]) -> None:
    page = decision_page(ask({"cmd\u202e": "a", "\u0441md": "b"}))
    assert list(values(page)) == [
        '["cmd⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩"]',
        "\u0441⟨U+0441⟩md",
    ]


def test_the_name_of_a_target_is_written_out_once(
    superuser_client: Client, ask: Callable[..., Decision]
) -> None:
    decision = ask({}, target_id="target_\u202ex")
    seen = superuser_client.get(f"/admin/decisions/decision/{decision.pk}/change/").content.decode()
    shown = "target_⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩x"
    assert f"{TOOL} → {shown}</h2>" in seen
    assert f'<span class="cty-chip" title="{shown}">{shown}</span>' in seen
    assert "\u202e" not in seen


def test_a_call_without_arguments_is_shown_and_confirmed(ask: Callable[..., Decision]) -> None:
    page = decision_page(ask({}))
    assert about(page) == {"arguments": "empty object"}
    assert page.digest


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ({"text": "x" * MAX_BYTES}, "bytes"),
        ({"many": [0] * (MAX_VALUES + 1)}, "values"),
        ({"n" * (NAME_MAX + 1): 1}, "name"),
        ({"text": "\ud800"}, "Unicode"),
        ({"text": b"x"}, "not JSON"),
        ({"number": float("nan")}, "not JSON"),
    ],
)
def test_what_cannot_be_shown_whole_is_denied_and_recorded(
    ask: Callable[..., Decision], principal: Principal, args: dict[str, Any], reason: str
) -> None:
    with pytest.raises(PolicyDenied, match=reason) as denied:
        admit_call(tool_call_request(principal, TOOL, args))
    assert denied.value.details["because"] == "hidden"
    assert not Decision.objects.exists()
    assert reason in AuditEntry.objects.get(action="policy.denied").metadata["reason"]


@pytest.mark.parametrize("page", ["9" * 4_301, "-1", "\u0661", "2"])
def test_a_number_of_no_page_gives_the_first_one(
    superuser_client: Client, ask: Callable[..., Decision], page: str
) -> None:
    decision = ask({"cmd": "ls"})
    link = confirmation_link(Confirmation.objects.get())
    for path in (link, f"/admin/decisions/decision/{decision.pk}/change/"):
        response = superuser_client.get(path, {"page": page})
        assert (response.status_code, response.context["page"].number) == (200, 1)


def test_a_decision_whose_arguments_were_not_stored_can_only_be_refused(
    ask: Callable[..., Decision],
) -> None:
    decision = ask({"cmd": "ls"})
    shown = digest_shown(decision.pk)
    Decision.objects.update(sealed_arguments=None)
    page = decision_page(Decision.objects.get())
    assert (page.digest, "not stored whole" in page.problem) == ("", True)
    for how in ("admin", "api"):
        with pytest.raises(Conflict, match="cannot be shown whole"):
            confirmations.confirm(decision_id=decision.pk, by="x", how=how, shown=shown)
    confirmations.refuse(decision_id=decision.pk, by="x", how="admin")
    assert Confirmation.objects.get().status == "refused"


def test_the_arguments_of_another_decision_are_not_shown(ask: Callable[..., Decision]) -> None:
    harmless, harmful = ask({"cmd": "ls"}), ask({"cmd": "rm"})
    harmful.sealed_arguments = harmless.sealed_arguments
    harmful.save()
    assert "cannot be decrypted for this decision" in decision_page(harmful).problem


def test_an_answer_with_the_digest_of_another_decision_is_refused_and_recorded(
    ask: Callable[..., Decision],
) -> None:
    first, second = ask({"cmd": "ls"}), ask({"cmd": "rm"})
    for decide in (confirmations.confirm, confirmations.refuse):
        with pytest.raises(NotAsShown):
            decide(decision_id=second.pk, by="x", how="link", shown=digest_shown(first.pk))
    tried = AuditEntry.objects.filter(action="confirmation.tried")
    assert [row.metadata["failed"] for row in tried] == ["digest", "digest"]


def test_over_rest_the_digest_is_optional_and_compared_when_sent(
    web: str, ask: Callable[..., Decision]
) -> None:
    secret = create_token(name="ops", scopes=CONFIRMER, trust="local")
    first, second = ask({"cmd": "ls"}), ask({"cmd": "rm"})
    with httpx.Client(base_url=web, headers=bearer(secret), timeout=60) as ops:

        def post(decision: Decision, **more: Any) -> httpx.Response:
            url = f"/api/v1/decision/{decision.pk}/confirm"
            return ops.post(url, json={"user_id": "alice", **more})

        wrong = post(first, shown_digest=digest_shown(second.pk))
        assert (wrong.status_code, wrong.json()["code"]) == (409, "shown_digest_mismatch")
        assert post(first, shown_digest="no").status_code == 400
        assert post(first, shown_digest=digest_shown(first.pk)).status_code == 200
        assert post(second).status_code == 200


def test_the_run_its_steps_and_who_asks_stand_beside_the_call(
    worker: WorkerProcess, submit_calls: Callable[..., Run]
) -> None:
    run = submit_calls("note:a\u202e", "risk:b")
    worker.work()
    decision = Decision.objects.get()
    text = as_text(decision_page(decision))
    for part in (f"{run.id}, step 2 of 2", "Inputs of the run: ", "Effect: ", run.principal_id):
        assert part in text
    assert "Step before: 1. " in text
    assert ": succeeded" in text
    assert "\u202e" not in text


def test_the_command_line_is_shown_as_the_runner_gets_it(
    api: httpx.Client, make_runner: MakeRunner, open_loopback: None
) -> None:
    make_runner(is_default=True, name="builder")
    call(api, "bash.exec", {"cmd": "eval $T", "env": {"T": "rm -f x"}, "cwd": "src"})
    page = decision_page(Decision.objects.get())
    assert values(page)["Command line"] == "env 'T=rm -f x' bash -c 'eval $T'"
    assert about(page)["Command line"] == "in the folder src of the runner"
    assert dict(page.facts)["Target"].startswith("builder (docker-runner, http://")


def test_the_folder_of_a_command_hides_nothing(
    api: httpx.Client, make_runner: MakeRunner, open_loopback: None
) -> None:
    make_runner(is_default=True, name="builder")
    call(api, "bash.exec", {"cmd": "ls", "cwd": "a\x1b[2J\u202e\n  | bash -c 'ok'"})
    text = as_text(decision_page(Decision.objects.get()))
    assert {one for one in text if not one.isprintable()} <= {"\n"}
    assert "\n  | bash -c 'ok'" not in text


@pytest.mark.parametrize(
    ("tool", "args", "diff"),
    [
        (
            "write_to_file",
            {"path": "game/scene/start.txt", "content": "changeBg:a.png;\n", "dryRun": False},
            "-changeBg:none;↵\n+changeBg:a.png;↵\n",
        ),
        (
            "write_to_file",
            {"path": "new.txt", "content": "a:b;\u200b\n", "dryRun": False},
            "--- /dev/null↵\n+++ new.txt↵\n@@ -1,0 +1,2 @@↵\n+a:b;⟨U+200B ZERO WIDTH SPACE⟩↵\n+",
        ),
        (
            "replace_in_file",
            {"path": "game/scene/start.txt", "find": "none", "replace": "x"},
            "-changeBg:none;↵\n+changeBg:x;↵\n",
        ),
    ],
    ids=["overwrite", "new file", "replace"],
)
def test_a_write_is_shown_as_a_diff(
    api: httpx.Client, project: Path, tool: str, args: dict[str, Any], diff: str
) -> None:
    create_rule(RuleFields("confirm", tool=tool, reason="risky"), actor="test")
    call(api, tool, args)
    assert diff in values(decision_page(Decision.objects.get()))["Diff"]


def test_a_file_that_cannot_be_read_does_not_hide_the_call(
    api: httpx.Client, project: Path
) -> None:
    create_rule(RuleFields("confirm", tool="replace_in_file", reason="risky"), actor="test")
    call(api, "replace_in_file", {"path": "absent.txt", "find": "a", "replace": "b"})
    page = decision_page(Decision.objects.get())
    assert values(page)["path"] == "absent.txt"
    assert "absent.txt" in dict(page.facts)["What it would do now"]
    assert page.digest


def test_a_message_is_shown_with_its_answers_and_slots_as_they_were_sent(
    api: httpx.Client, superuser_client: Client, settings: Any
) -> None:
    settings.CONFIRM_DELIVERY = "out_of_band"
    risky = "Delete all rows of the orders table; cookie=1; and drop the customers table."
    first = api.post(
        "/api/v1/chat",
        json={"user_id": "alice", "message": risky, "idempotency_key": "1"},
    ).json()
    slots = {**KNOWN_SLOTS, "target": "orders; password=x and customers"}
    answer = {"message": "Only in staging; token=abc rm", "idempotency_key": "2", "slots": slots}
    session = {"user_id": "alice", "session_id": first["session_id"]}
    trace = api.post("/api/v1/chat", json={**session, **answer}).json()["trace"]
    assert trace["mode"] == "confirm"
    decision = Decision.objects.get(pk=trace["decision_id"])
    exact: dict[str, Any] = dict(open_arguments(decision))
    assert exact["message"] == risky
    url = f"/admin/decisions/decision/{decision.pk}/change/"
    seen = text_of(superuser_client.get(url).content.decode())
    for text in (risky, exact["answers"][0], slots["target"]):
        assert text in seen
    assert "***" not in without_line(seen)
    assert "customers" not in str(decision.arguments["message"])
