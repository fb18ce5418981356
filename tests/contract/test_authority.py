"""Test what a caller may do with what belongs to another caller (docs/trust.md): the ways in which
one could steer, read or confirm it. `test_access_grid.py` tries every entry point.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from importlib import import_module
from typing import Any

import httpx
import pytest
from django.apps import apps
from django.core.files.base import ContentFile
from django.db import connection

from artifacts.models import Artifact, ArtifactUpload
from artifacts.selectors import get_artifact
from artifacts.storage.blobs import blob_storage
from artifacts.storage.staging import staging_name
from artifacts.uploads import complete_upload, start_upload
from decisions.authorization.confirm_by_token import confirm_decision
from decisions.authorization.confirmations import open_confirmation
from decisions.foundation.errors import (
    ConfirmTokenInvalid,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
)
from decisions.identity.authority import sees
from decisions.identity.principals import (
    SCOPES,
    Principal,
    admin_principal,
    authenticate,
    create_token,
    is_credential_active,
)
from decisions.identity.tokens import set_token_users
from decisions.models import Decision, Token
from runners.errors import ToolFailed
from runs.calls.uploads import read_upload
from runs.conversations.services import add_message, create_task, resume_task, take_over_task
from runs.live.paired_browser import resume_from_browser, take_over_from_browser
from runs.models import Run, Task, Webhook, WebhookDelivery
from runs.submission.answer import answer_run
from runs.submission.cancel import cancel_run
from runs.webhooks.services import (
    check_webhook_option,
    create_webhook,
    delete_webhook,
    list_webhooks,
)
from runs.worker.worker import WorkerProcess
from tests.support.browser.paired_browser import pair
from tests.support.decisions.confirmations import CONFIRMER
from tests.support.decisions.continuity import SHELL, create_decision
from tests.support.runs.task_socket import open_task_socket
from tests.support.runs.webhook_fixtures import MakeWebhook
from tests.support.runs.webhooks import submit_canceled

MakeClient = Callable[..., httpx.Client]


@pytest.fixture
def operator(principal: Principal) -> Principal:
    """Return an operator of the admin, on rows of the local workspace."""
    return admin_principal(
        "ann", tenant_id=principal.tenant_id, workspace_id=principal.workspace_id
    )


@pytest.fixture
def colleague(principal: Principal) -> Principal:
    """Return another credential of the same workspace and trust level."""
    return replace(principal, id="token:colleague")


def ask(owner: Principal, question: str, worker: WorkerProcess) -> tuple[str, str]:
    """Create a task whose run asks a question; return the ids of both."""
    task, _ = create_task(principal=owner, message=f"ask {question}")
    worker.work()
    run = Run.objects.get(task_id=task["taskId"])
    assert run.waiting_for["type"] == "answer"
    return str(task["taskId"]), run.id


@pytest.mark.usefixtures("talk_template")
def test_a_remote_caller_does_not_take_over_an_operators_task(
    web: str, client_with: MakeClient, operator: Principal
) -> None:
    remote = client_with()
    task, _ = create_task(principal=operator, message="say hi")
    task_id = task["taskId"]
    for action in ("takeover", "resume", "stop", "ticket"):
        assert remote.post(f"/api/v1/tasks/{task_id}/{action}").status_code == 404
    assert Task.objects.get().status == "running"
    token = remote.headers["Authorization"].removeprefix("Bearer ")
    for path in (task_id, f"{task_id}/live"):
        with open_task_socket(web, path, token=token) as socket:
            assert socket.close_code() == 4404


@pytest.mark.usefixtures("talk_template")
def test_a_remote_caller_answers_no_question_of_a_local_run_and_does_not_read_its_result(
    client_with: MakeClient, principal: Principal, worker: WorkerProcess
) -> None:
    remote = client_with()
    task_id, run_id = ask(principal, "where?", worker)
    answer = {"answer": "Open http://127.0.0.1:1/secret"}
    assert remote.post(f"/api/v1/runs/{run_id}/answer", json=answer).status_code == 404
    message = {"content": "Open http://127.0.0.1:1/secret"}
    assert remote.post(f"/api/v1/tasks/{task_id}/messages", json=message).status_code == 404
    assert remote.get(f"/api/v1/runs/{run_id}").status_code == 404
    assert remote.get(f"/api/v1/runs/{run_id}/events").status_code == 404
    for path in ("runs", "tasks"):
        assert remote.get(f"/api/v1/{path}").json()["total"] == 0
    assert Run.objects.get().waiting_for["type"] == "answer"


@pytest.mark.parametrize("who", ["colleague", "operator"])
@pytest.mark.usefixtures("talk_template")
def test_a_paired_browser_obeys_who_paired_it(
    principal: Principal, worker: WorkerProcess, who: str, request: pytest.FixtureRequest
) -> None:
    other: Principal = request.getfixturevalue(who)
    task_id, run_id = ask(principal, "which one?", worker)
    browser_id = pair(principal).id
    Task.objects.update(selected_client_id=browser_id)
    Run.objects.update(inputs={"goal": "x", "taskId": task_id, "selectedClientId": browser_id})
    with pytest.raises(Forbidden, match="another caller paired"):
        answer_run(principal=other, run_id=run_id, answer="all of them")
    with pytest.raises(Forbidden, match="another caller paired"):
        add_message(principal=other, task_id=task_id, content="all of them")
    take_over_task(principal=principal, task_id=task_id)
    with pytest.raises(Forbidden, match="another caller paired"):
        resume_task(principal=other, task_id=task_id)
    assert Task.objects.get().status == "takeover"
    resume_task(principal=principal, task_id=task_id)


@pytest.mark.usefixtures("talk_template")
def test_only_an_operator_stops_an_agent_in_anothers_browser_by_a_takeover(
    principal: Principal, colleague: Principal, operator: Principal
) -> None:
    task, _ = create_task(principal=principal, message="say hi")
    Task.objects.update(selected_client_id=pair(principal).id)
    with pytest.raises(Forbidden):
        take_over_task(principal=colleague, task_id=task["taskId"])
    take_over_task(principal=operator, task_id=task["taskId"])


@pytest.mark.usefixtures("talk_template")
def test_the_person_at_a_browser_that_was_paired_remotely_takes_over_their_local_task(
    principal: Principal, remote: Principal
) -> None:
    browser_id = pair(remote).id
    task, _ = create_task(principal=principal, message="say hi")
    Task.objects.update(selected_client_id=browser_id)
    where: Any = {"principal": remote, "client_id": browser_id, "task_id": task["taskId"]}
    take_over_from_browser(**where, reason="input")
    resume_from_browser(**where)
    assert Task.objects.get().status == "running"


@pytest.mark.usefixtures("talk_template")
def test_no_credential_confirms_what_it_wrote_in_an_answer(
    principal: Principal, remote: Principal, worker: WorkerProcess
) -> None:
    asker = replace(remote, id="token:asker")
    writer = replace(principal, id="token:writer", scopes=SCOPES)
    _, run_id = ask(asker, "which command?", worker)
    answer_run(principal=writer, run_id=run_id, answer="rm -rf build")
    decision = create_decision(asker, mode="confirm", user_id=None, run_id=run_id, trust="remote")
    open_confirmation(decision)
    call = {"decision_id": decision.pk, "user_id": "alice"}
    with pytest.raises(Forbidden, match="can write confirms nothing"):
        confirm_decision(principal=writer, call=call)
    confirm_decision(principal=replace(writer, scopes=CONFIRMER), call=call)


@pytest.mark.parametrize(
    "changes",
    [
        {"acts_for": frozenset({"alice"})},
        {"trust": "remote"},
        {"workspace_id": "elsewhere"},
    ],
    ids=["another token of the user", "lower trust", "workspace"],
)
def test_a_credential_confirms_no_call_that_it_does_not_see(
    principal: Principal, changes: dict[str, Any]
) -> None:
    decision = create_decision(principal, mode="confirm", trust="local")
    open_confirmation(decision)
    caller = replace(principal, id="token:other", scopes=CONFIRMER)
    call = {"decision_id": decision.pk, "user_id": "alice"}
    with pytest.raises(ConfirmTokenInvalid):
        confirm_decision(principal=replace(caller, **changes), call=call)
    confirm_decision(principal=caller, call=call)


def test_a_token_that_confirms_writes_nothing_that_an_agent_reads(client_with: MakeClient) -> None:
    client = client_with(scopes=CONFIRMER)
    refused = client.post("/api/v1/user/alice/objects/shell", json=SHELL)
    assert (refused.status_code, "writes nothing" in refused.text) == (403, True)


def test_a_remote_caller_gets_no_artifact_of_a_local_one(
    client_with: MakeClient, make_artifact: Callable[..., str]
) -> None:
    artifact_id, remote = make_artifact(b"a private page"), client_with()
    address = f"/api/v1/artifacts/{artifact_id}"
    assert remote.get(f"{address}/content").status_code == 404
    assert client_with(trust="local").get(f"{address}/content").content == b"a private page"
    Artifact.objects.update(trust="remote")
    assert remote.get(f"{address}/content").content == b"a private page"


def test_a_remote_run_uploads_no_file_of_a_local_caller(
    principal: Principal, make_artifact: Callable[..., str]
) -> None:
    artifact_id = make_artifact(b"a private page")
    Artifact.objects.update(run_id="")
    mine = Run(workspace_id=principal.workspace_id, principal_id="token:r", trust="remote")
    with pytest.raises(ToolFailed, match="there is no artifact"):
        read_upload(mine, artifact_id=artifact_id, path=None, limit=100)
    mine.trust = "local"
    assert read_upload(mine, artifact_id=artifact_id, path=None, limit=100)[1] == b"a private page"


def test_an_upload_is_completed_by_who_announced_it(
    api: httpx.Client, client_with: MakeClient
) -> None:
    file = {"name": "a.txt", "mimeType": "text/plain", "sizeBytes": 1, "sha256": "0" * 64}
    upload_id = api.post("/api/v1/artifacts/uploads", json=file).json()["uploadId"]
    address = f"/api/v1/artifacts/uploads/{upload_id}/complete"
    assert client_with(trust="local").post(address).status_code == 404
    assert api.post(address).status_code == 409  # nothing was sent


def test_what_a_local_caller_announced_is_not_completed_as_a_remote_callers_artifact(
    principal: Principal,
) -> None:
    file = {"name": "a.txt", "mime_type": "text/plain", "sha256": sha256(b"secret").hexdigest()}
    announced = start_upload(principal=principal, **file, size_bytes=6, base_url="http://x/")
    upload_id = announced["uploadId"]
    blob_storage().save(staging_name(upload_id), ContentFile(b"secret"))
    elsewhere = replace(principal, trust="remote")
    with pytest.raises(NotFound):
        asyncio.run(complete_upload(principal=elsewhere, upload_id=upload_id))
    ArtifactUpload.objects.update(trust=None)  # an older version stored none
    with pytest.raises(NotFound):
        asyncio.run(complete_upload(principal=elsewhere, upload_id=upload_id))
    asyncio.run(complete_upload(principal=principal, upload_id=upload_id))
    assert Artifact.objects.get().trust == "local"


def test_a_remote_callers_upload_stays_remote_when_it_is_completed_on_this_machine(
    principal: Principal,
) -> None:
    file = {"name": "a.txt", "mime_type": "text/plain", "sha256": sha256(b"public").hexdigest()}
    elsewhere = replace(principal, trust="remote")
    announced = start_upload(principal=elsewhere, **file, size_bytes=6, base_url="http://x/")
    blob_storage().save(staging_name(announced["uploadId"]), ContentFile(b"public"))
    asyncio.run(complete_upload(principal=principal, upload_id=announced["uploadId"]))
    assert Artifact.objects.get().trust == "remote"


def test_a_remote_webhook_receives_no_end_of_a_local_run_that_does_not_name_it(
    principal: Principal, remote: Principal, submit: Callable[..., str], make_webhook: MakeWebhook
) -> None:
    hook = make_webhook()["webhookId"]
    Webhook.objects.update(trust="remote")
    submit_canceled(submit, principal)
    assert WebhookDelivery.objects.count() == 0
    submit_canceled(submit, principal, webhookId=hook)
    of_a_remote_caller = submit()
    Run.objects.filter(id=of_a_remote_caller).update(trust="remote")
    cancel_run(principal=remote, run_id=of_a_remote_caller)
    assert WebhookDelivery.objects.count() == 2


def test_a_webhook_of_a_local_caller_does_not_exist_for_a_remote_one(
    remote: Principal, make_webhook: MakeWebhook
) -> None:
    hook = make_webhook()["webhookId"]
    assert list_webhooks(principal=remote) == {"webhooks": []}
    with pytest.raises(NotFound):
        delete_webhook(principal=remote, webhook_id=hook)


@pytest.mark.usefixtures("talk_template")
def test_a_key_of_a_local_task_finds_it_for_no_remote_call_of_the_same_token(
    principal: Principal, remote: Principal
) -> None:
    create_task(principal=principal, message="say hi", key="k")
    with pytest.raises(Conflict, match="used from this machine"):
        create_task(principal=remote, message="say hi", key="k")


def test_rows_of_an_older_version_get_the_owner_of_their_run_and_without_one_are_for_local_callers(
    principal: Principal, remote: Principal, submit: Callable[..., str], make_artifact: Any
) -> None:
    of_run, of_none = make_artifact(b"a", run_id=submit()), make_artifact(b"b")
    create_decision(principal, run_id=Run.objects.get().id, trust=None)
    Run.objects.update(trust="remote", user_id="alice")
    Artifact.objects.update(trust=None, principal_id=None, user_id=None)
    migration = import_module("runs.migrations.0026_owners")
    with connection.cursor() as cursor:
        cursor.execute(migration._ARTIFACTS)
        cursor.execute(migration._DECISIONS)
    owners = Artifact.objects.values_list("id", "trust", "principal_id", "user_id")
    assert set(owners) == {(of_run, "remote", "local", "alice"), (of_none, None, None, None)}
    assert Decision.objects.get().trust == "remote"
    assert get_artifact(principal=remote, artifact_id=of_run)
    with pytest.raises(NotFound):
        get_artifact(principal=remote, artifact_id=of_none)
    assert get_artifact(principal=principal, artifact_id=of_none)


@pytest.mark.parametrize(
    ("subscriber", "is_told"),
    [
        ({"acts_for": frozenset({"bob"})}, False),
        ({"acts_for": frozenset({"lice", "bob"})}, False),
        ({"acts_for": frozenset({'x"alice'})}, False),
        ({"acts_for": frozenset({"alice"})}, True),
        ({"acts_for": frozenset({"alice", "bob"})}, True),
        ({"acts_for": frozenset({"bob"}), "id": "token:alice"}, True),
        ({"acts_for": frozenset({"alice"}), "trust": "remote"}, False),
        ({"acts_for": None}, True),
        ({"acts_for": None, "trust": "remote"}, False),
    ],
)
@pytest.mark.usefixtures("talk_template")
def test_a_webhook_receives_the_questions_and_ends_that_its_creator_could_read(
    principal: Principal, worker: WorkerProcess, subscriber: dict[str, Any], is_told: bool
) -> None:
    alice = replace(principal, id="token:alice", acts_for=frozenset({"alice"}))
    creator = replace(principal, **{"id": "token:other", **subscriber})
    create_webhook(principal=creator, url="https://93.184.216.34/", questions=True)
    _, run_id = ask(alice, "What is the PIN?", worker)
    cancel_run(principal=alice, run_id=run_id)
    assert sees(creator, Run.objects.get(id=run_id)) == is_told
    told = WebhookDelivery.objects.order_by("event").values_list("event", flat=True)
    assert list(told) == (["run.canceled", "run.waiting"] if is_told else [])


@pytest.mark.parametrize(
    ("creator", "is_shown"),
    [
        ({"acts_for": frozenset({"bob"})}, False),
        ({"acts_for": None}, False),
        ({"acts_for": frozenset({"alice", "bob"})}, False),
        ({"acts_for": frozenset({"alice"})}, True),
        ({"acts_for": frozenset({"alice"}), "trust": "remote"}, True),
        ({"acts_for": frozenset({"bob"}), "id": "token:alice"}, True),
    ],
)
def test_a_token_limited_to_users_sees_the_webhooks_of_these_users_alone(
    principal: Principal, creator: dict[str, Any], is_shown: bool
) -> None:
    alice = replace(principal, id="token:alice", acts_for=frozenset({"alice", "a"}))
    by = replace(principal, **{"id": "token:other", **creator})
    hook = create_webhook(principal=by, url="https://93.184.216.34/")["webhookId"]
    shown = [hook] if is_shown else []
    assert [one["webhookId"] for one in list_webhooks(principal=alice)["webhooks"]] == shown
    if not is_shown:
        with pytest.raises(NotFound):
            delete_webhook(principal=alice, webhook_id=hook)
        with pytest.raises(InvalidInput, match="no enabled webhook"):
            check_webhook_option(alice, hook)


def test_a_token_that_is_limited_later_gets_messages_of_its_users_alone(
    principal: Principal,
) -> None:
    secret = create_token(name="t", workspace=principal.workspace_id, trust="local")
    creator, token = authenticate(secret), Token.objects.get()
    hook = create_webhook(principal=creator, url="https://93.184.216.34/")["webhookId"]
    set_token_users(token_id=token.id, users=["bob"], actor="test")
    assert Webhook.objects.get(id=hook).users == '"bob"'
    assert not is_credential_active(creator)  # what it has open ends
    assert is_credential_active(authenticate(secret))


@pytest.mark.parametrize(
    ("users", "trust", "is_sent"),
    [
        (None, "local", True),
        (None, "remote", False),
        ('"bob"', "local", False),
        ('"alice"', "local", True),
    ],
)
def test_a_webhook_receives_the_confirmations_that_its_creator_could_read(
    principal: Principal, users: str | None, trust: str, is_sent: bool
) -> None:
    writer = replace(principal, scopes=SCOPES)
    create_webhook(principal=writer, url="https://93.184.216.34/", confirmations=True)
    Webhook.objects.update(users=users, trust=trust, created_by="token:other")
    decision = create_decision(principal, mode="confirm", user_id="alice", trust="local")
    open_confirmation(decision, delivery="out_of_band")
    assert WebhookDelivery.objects.exists() == is_sent


@pytest.mark.parametrize(("acts_for", "users"), [(["bob", "a"], '"a""bob"'), ([], None)])
def test_a_webhook_of_an_older_version_gets_the_users_of_the_token_that_created_it(
    make_webhook: MakeWebhook, principal: Principal, acts_for: list[str], users: str | None
) -> None:
    token = Token.objects.create(
        name="t", digest="d", workspace_id=principal.workspace_id, trust="remote", acts_for=acts_for
    )
    for creator in (f"token:{token.id}", "token:tok_unknown", "admin:ann"):
        hook = make_webhook()["webhookId"]
        Webhook.objects.filter(id=hook).update(created_by=creator)
    import_module("runs.migrations.0028_users_of_webhooks").set_users(apps, None)
    hooks = Webhook.objects.values_list("created_by", "users")
    of_others = {("token:tok_unknown", None), ("admin:ann", None)}
    assert set(hooks) == of_others | {(f"token:{token.id}", users)}
