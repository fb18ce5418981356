"""A credential in the query of a run's URL reaches the site, and nothing that callers read."""

from __future__ import annotations

import json

from django.forms.models import model_to_dict
from django.test import Client

from artifacts.models import Artifact
from artifacts.selectors import open_bytes
from decisions.models import AuditEntry
from runs.models import RunEvent, RunStep
from tests.support.browser.page_server import PageResponse, html
from tests.support.browser.template_sites import RunTemplate, Site

SECRET = "canary-url-8812"


def test_a_credential_in_a_url_is_in_no_event_step_result_artifact_or_page(
    run_template: RunTemplate, site: Site, superuser_client: Client
) -> None:
    queries: list[str] = []

    def reflect(query: str) -> PageResponse:
        queries.append(query)
        return html(f"<title>Reports</title><h1>Hello</h1><p>You sent {query}</p>")

    site.server.add("/reports", reflect)
    read = f"{site.url('/reports')}?access_token={SECRET}"
    refused = f"http://127.0.0.1:1/?token={SECRET}"
    run = run_template("batch_extract_pages", urls=[read, refused])
    assert run.status == "partial_success", run.error
    assert queries == [f"access_token={SECRET}"]
    shown = [model_to_dict(run, exclude=["inputs", "next_actions"])]
    shown += [model_to_dict(step, exclude=["input"]) for step in RunStep.objects.filter(run=run)]
    shown += [model_to_dict(event) for event in RunEvent.objects.filter(run=run)]
    shown += [model_to_dict(row) for row in AuditEntry.objects.filter(resource_id=run.id)]
    assert "access_token=***" in str(run.result)
    assert [row for row in shown if SECRET in json.dumps(row, default=str)] == []
    assert SECRET not in json.dumps(run.next_actions)
    for artifact in Artifact.objects.filter(run_id=run.id):
        with open_bytes(artifact) as file:
            assert SECRET.encode() not in file.read()
    page = superuser_client.get(f"/admin/runs/run/{run.id}/change/").content.decode()
    assert SECRET not in page


def test_the_parameters_of_a_url_rename_no_field_of_the_result(
    run_template: RunTemplate, site: Site
) -> None:
    site.server.add("/plain", lambda query: html("<title>Reports</title><h1>Hello</h1>"))
    run = run_template(
        "batch_extract_pages", urls=[site.url("/plain") + "?a_token=content&b_token=sections"]
    )
    [page] = run.result["items"]
    assert page["content"]["sections"][0]["heading"] == "Hello"
    assert page["url"].endswith("?a_token=***&b_token=***")
