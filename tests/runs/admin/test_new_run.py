"""The form that submits a run: made of the template's schema, validated by the template."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import Principal, ensure_workspace
from decisions.models import AuditEntry
from runs.admin.new_run.fields import FormFields, InputField
from runs.admin.new_run.posted import PostedInputs
from runs.admin.new_run.prefill import without_secrets
from runs.admin.new_run.shapes import shape_of
from runs.models import Run, RunSecret
from runs.task_templates.registry import find_template, list_templates
from runs.webhooks.services import create_webhook, disable_webhook

AGENT = "/admin/runs/run/new/agent_task/"
BATCH = "/admin/runs/run/new/batch_extract_pages/"
LOGIN = "/admin/runs/run/new/login_keep_session/"
KEY = "form-" + "a1" * 12
LISTED = [template.template_id for template in list_templates() if template.is_listed]
EVIL = '"><svg onload=alert(1)>'


def texts_of(fields: list[InputField] | Any) -> Iterator[tuple[str, str]]:
    """Yield the keys and texts of a form, as a browser posts them."""
    for one in fields:
        yield from texts_of(one.children)
        if one.kind not in ("group", "rows"):
            yield one.key, one.value


def post(client: Client, path: str, **texts: str) -> tuple[int, str]:
    """Post a form; return the status and the page, or the address of the redirect."""
    fields = {"key": KEY, "workspace": ensure_workspace().id}
    named = {name.replace("__", "."): text for name, text in texts.items()}
    response = client.post(path, fields | named)
    return response.status_code, response.get("Location", "") or response.content.decode()


@pytest.mark.parametrize("template_id", LISTED)
def test_the_examples_of_every_template_survive_the_form(template_id: str) -> None:
    template = find_template(template_id)
    shape = shape_of(template.inputs_schema)
    for example in template.example_inputs:
        shown = {name: one for name, one in without_secrets(template, example).items() if one}
        form = FormFields(shape, shown, {}, {})
        assert form.other_errors == []
        assert PostedInputs(shape, dict(texts_of(form.fields))).value == shown


def test_a_submitted_form_is_a_run_of_the_operator(superuser_client: Client) -> None:
    texts = {"inputs__urls": "http://a.example/\r\n\r\nhttp://b.example/", "seconds": "90"}
    status, location = post(superuser_client, BATCH, inputs__concurrency="2", **texts)
    run = Run.objects.get()
    assert (status, location) == (302, f"/admin/runs/run/{run.id}/change/")
    assert run.inputs == {"urls": ["http://a.example/", "http://b.example/"], "concurrency": 2}
    assert (run.timeout_ms, run.mode, run.principal_id) == (90_000, "async", "admin:boss")
    [row] = AuditEntry.objects.filter(action="run.submitted")
    assert (row.actor, row.resource_id) == ("admin:boss", run.id)


def test_a_form_that_is_sent_twice_submits_one_run(superuser_client: Client) -> None:
    first = post(superuser_client, BATCH, inputs__urls="http://a.example/")
    assert post(superuser_client, BATCH, inputs__urls="http://a.example/") == first
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    ("texts", "key", "message"),
    [
        ({}, "inputs.urls", "This field is required."),
        ({"inputs__urls": "x", "inputs__concurrency": "9"}, "inputs.concurrency", "maximum of 5"),
        ({"inputs__urls": "x", "inputs__concurrency": "two"}, "inputs.concurrency", "integer"),
        ({"inputs__urls": "x", "inputs__onHttpError": "no"}, "inputs.onHttpError", "keep"),
        ({"inputs__urls": f"a\n{'x' * 9000}"}, "inputs.urls", "line 2: "),
        (
            {"inputs__urls": "x", "inputs__extract__maxElements": "0"},
            "inputs.extract.maxElements",
            "minimum of 1",
        ),
        ({"inputs__urls": "x", "seconds": "soon"}, "seconds", "From 0.001 to 600 seconds."),
        ({"inputs__urls": "x", "labels": "env"}, "labels", "is not written name=value"),
        ({"inputs__urls": "x", "labels": "a=b\na=c"}, "labels", "is given twice"),
        ({"inputs__urls": "x", "labels": "-=b"}, "labels", "beginning with a letter"),
        ({"inputs__urls": "x", "webhook": "hook_x"}, "webhook", "no enabled webhook"),
        ({"inputs__urls": "x", "session": "sess_x"}, "session", "There is no open session"),
    ],
)
def test_an_error_stands_at_its_field(
    superuser_client: Client, texts: dict[str, str], key: str, message: str
) -> None:
    status, page = post(superuser_client, BATCH, **texts)
    assert status == 200
    assert "Nothing was submitted." in page
    error = page.split(f'id="e-{key}">')[1].split("</p>")[0]
    assert message in error
    assert Run.objects.count() == 0


def test_text_that_is_no_json_is_shown_again_with_its_error(superuser_client: Client) -> None:
    path = "/admin/runs/run/new/replay_success_path/"
    _, page = post(superuser_client, path, inputs__objectId="o", inputs__slots='{"a": ')
    assert "not valid JSON" in page
    assert "{&quot;a&quot;: </textarea>" in page


def test_a_nul_and_markup_in_an_input_are_refused_and_escaped(superuser_client: Client) -> None:
    _, page = post(superuser_client, BATCH, inputs__urls=f"a\0{EVIL}")
    assert "NUL" in page
    assert "<svg" not in page
    assert Run.objects.count() == 0


def test_secrets_are_sealed_and_never_shown_again(superuser_client: Client) -> None:
    names = {
        "inputs__credentials__username": "ann",
        "inputs__credentials__password": "hunter2",
        "inputs__successIndicator__type": "textIncludes",
        "inputs__successIndicator__value": "Log out",
        "inputs__fields__mode": "semantic",
        "inputs__fields__usernameQuery": "user",
        "inputs__fields__passwordQuery": "password",
    }
    status, page = post(superuser_client, LOGIN, **names)  # startUrl is missing
    assert (status, "hunter2" in page, 'value="ann"' in page) == (200, False, False)
    assert 'value="Log out"' in page
    status, _ = post(superuser_client, LOGIN, inputs__startUrl="http://a.example/", **names)
    run = Run.objects.get()
    assert (status, run.inputs["credentials"]["password"]) == (302, "***")
    assert RunSecret.objects.filter(run=run).exists()
    page = superuser_client.get(f"{LOGIN}?from={run.id}").content.decode()
    assert 'value="http://a.example/"' in page
    assert not any(text in page for text in ("hunter2", "***", 'value="ann"'))
    assert "type them again" in page


def test_passwords_in_addresses_are_not_filled_in() -> None:
    template = find_template("batch_extract_pages")
    urls = ["https://me:hunter2@host/", "https://host/"]
    assert without_secrets(template, {"urls": urls}) == {"urls": ["", "https://host/"]}


def test_a_value_marked_secret_is_not_filled_in() -> None:
    template = find_template("submit_and_verify")
    field = {"name": "card", "value": "4111", "secret": True}
    shown = without_secrets(template, {"fields": [field, {"name": "a", "value": "b"}]})
    assert shown["fields"] == [{"name": "card", "secret": True}, {"name": "a", "value": "b"}]


def test_a_run_again_keeps_workspace_trust_and_options(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    old = make_run(
        template_id="batch_extract_pages",
        inputs={"urls": ["http://a.example/"]},
        trust="remote",
        options={"outputSchema": {"type": "object"}, "mode": "sync", "traceparent": "x"},
    )
    page = superuser_client.get(f"{BATCH}?from={old.id}").content.decode()
    assert "\nhttp://a.example/</textarea>" in page
    texts = {"from": old.id, "workspace": "ws_other"}
    status, _ = post(superuser_client, BATCH, inputs__urls="http://b.example/", **texts)
    new = Run.objects.exclude(id=old.id).get()
    assert (status, new.trust, new.workspace_id) == (302, "remote", old.workspace_id)
    assert new.options == {"outputSchema": {"type": "object"}, "mode": "async"}


def test_a_run_again_has_the_labels_of_the_form_and_names_the_earlier_run(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    inputs, labels = {"urls": ["http://a.example/"]}, {"env": "prod", "team": "search"}
    old = make_run(template_id="batch_extract_pages", inputs=inputs, labels=labels)
    page = superuser_client.get(f"{BATCH}?from={old.id}").content.decode()
    assert "\nenv=prod\nteam=search</textarea>" in page
    texts = {"from": old.id, "labels": "env=test\r\n\r\n team=search"}
    assert post(superuser_client, BATCH, inputs__urls="http://b.example/", **texts)[0] == 302
    new = Run.objects.exclude(id=old.id).get()
    assert (new.again_of, new.labels) == (old.id, {"env": "test", "team": "search"})
    [row] = AuditEntry.objects.filter(action="run.submitted")
    assert row.metadata["againOf"] == old.id
    for run, other, text in ((old, new, "Run again as"), (new, old, "Run again from")):
        page = superuser_client.get(f"/admin/runs/run/{run.id}/change/").content.decode()
        assert f"/admin/runs/run/{other.id}/change/" in page.split(text)[1].split("</div>")[0]


def test_an_agent_can_run_again_with_another_output_schema(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    first, other = {"type": "object"}, {"type": "object", "required": ["hours"]}
    inputs = {"goal": "Find the hours.", "outputSchema": first}
    old = make_run(template_id="agent_task", inputs=inputs, options={"outputSchema": first})
    texts = {"inputs__goal": "Find them.", "inputs__outputSchema": json.dumps(other)}
    assert post(superuser_client, AGENT, **texts, **{"from": old.id})[0] == 302
    assert Run.objects.exclude(id=old.id).get().inputs["outputSchema"] == other


def test_the_webhook_of_a_run_is_chosen_among_those_of_its_workspace(
    superuser_client: Client, staff_client: Callable[..., Client], principal: Principal
) -> None:
    hook = create_webhook(principal=principal, name="builds", url="https://hooks.example/secret")
    gone = create_webhook(principal=principal, name="gone", url="https://hooks.example/")
    disable_webhook(principal=principal, webhook_id=gone["webhookId"])
    page = superuser_client.get(BATCH).content.decode()
    assert "builds · hooks.example<" in page
    assert ("example/secret" in page, "gone" in page) == (False, False)
    assert "builds" not in staff_client("runs.change_run").get(BATCH).content.decode()
    texts = {"inputs__urls": "http://a.example/"}
    assert post(superuser_client, BATCH, webhook=hook["webhookId"], **texts)[0] == 302
    assert Run.objects.get().options["webhookId"] == hook["webhookId"]


def test_a_run_that_policy_denies_is_refused_with_its_reason(superuser_client: Client) -> None:
    create_rule(RuleFields("deny", tool="run_task_template", reason="Not today."), actor="test")
    status, page = post(superuser_client, BATCH, inputs__urls="http://a.example/")
    assert (status, Run.objects.count()) == (200, 0)
    assert "Nothing was submitted." in page
    assert "Not today." in page


def test_the_form_needs_the_permission_to_change_runs(staff_client: Callable[..., Client]) -> None:
    reader, operator = staff_client("runs.view_run"), staff_client("runs.change_run")
    for path in ("/admin/runs/run/new/", BATCH):
        assert (reader.get(path).status_code, post(reader, path)[0]) == (403, 403)
        assert operator.get(path).status_code == 200
    assert Run.objects.count() == 0


@pytest.mark.parametrize("template_id", ["session_action", "nothing", "test_stepwise%00"])
def test_there_is_no_form_for_a_template_that_callers_cannot_run(
    superuser_client: Client, template_id: str
) -> None:
    assert superuser_client.get(f"/admin/runs/run/new/{template_id}/").status_code == 404


def test_the_choice_lists_every_template_that_callers_can_run(superuser_client: Client) -> None:
    page = superuser_client.get("/admin/runs/run/new/").content.decode()
    assert all(f"/admin/runs/run/new/{template_id}/" in page for template_id in LISTED)
    assert "session_action" not in page
