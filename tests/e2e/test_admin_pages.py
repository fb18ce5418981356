"""Test the admin site in a real Chromium: the sign-in link, pages that update themselves,
confirmations, exports and untrusted names.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.contrib import admin

from decisions.audit.verify_bundle import check_bundle
from decisions.authorization.confirmation_links import confirmation_link
from decisions.authorization.confirmations import open_confirmation
from decisions.authorization.sealed_arguments import seal_arguments
from decisions.identity.principals import Principal
from decisions.models import Confirmation, Decision
from runs.models import Run, RunStep
from tests.support.admin.visitor import Visitor

JPEG = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000ffdb004300" + "03" * 64 + "ffc0000b08000100010101"
    "1100ffc40014000100000000000000000000000000000009ffc40014100100000000000000000000000000000000"
    "ffda0008010100003f0054dfffd9"
)


def run_page(run: Run) -> str:
    """Return the path of a run's page."""
    return f"/admin/runs/run/{run.id}/change/"


@pytest.mark.slow
def test_a_sign_in_link_opens_the_site_and_a_first_run_replaces_the_empty_page(
    visitor: Visitor, make_run: Callable[..., Run]
) -> None:
    visitor.open("/admin/")
    visitor.wait_for("text=No runs yet")
    run = make_run()
    visitor.wait_for(f"a[href*='{run.id}']")


@pytest.mark.slow
def test_no_page_of_the_admin_breaks_its_content_policy(
    visitor: Visitor, make_run_with_steps: Callable[..., Run]
) -> None:
    run = make_run_with_steps(["succeeded", "failed"], status="failed")
    admin.autodiscover()
    models = [model._meta.label_lower.replace(".", "/") for model in admin.site._registry]
    forms = ("decisions/policyrule", "decisions/token", "runs/webhook")
    for path in (*models, *(f"{form}/new" for form in forms), "decisions/policyrule/test"):
        visitor.open(f"/admin/{path}/")
    visitor.open(run_page(run))
    visitor.click("details > summary")
    visitor.open("/admin/")
    visitor.do(visitor.page.evaluate("document.body.append(document.createElement('script'))"))
    assert visitor.page_errors == []
    inline = "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.ran=1>')"
    visitor.do(visitor.page.evaluate(inline))
    visitor.do(visitor.page.wait_for_timeout(200))
    assert "Content Security Policy" in visitor.page_errors.pop()
    assert visitor.do(visitor.page.evaluate("window.ran")) is None


@pytest.mark.slow
def test_a_run_page_updates_itself_and_keeps_opened_details_open(
    visitor: Visitor, make_run_with_steps: Callable[..., Run]
) -> None:
    run = make_run_with_steps(["succeeded", "started"], status="running")
    visitor.open(run_page(run))
    visitor.click("details[data-key=step-0] > summary")
    visitor.wait_for("details[data-key=step-0] >> text=pages.example/0.html")
    now = datetime.now(UTC)
    RunStep.objects.filter(run=run, index=1).update(status="succeeded", ended_at=now)
    Run.objects.filter(id=run.id).update(done_steps=2)
    visitor.wait_for("text=2 of 2 steps")
    visitor.wait_for("details[data-key=step-0][open] >> text=pages.example/0.html")
    Run.objects.filter(id=run.id).update(status="succeeded", ready=False, ended_at=now)
    visitor.wait_for("[data-part=head] .cty-pill[data-tone=succeeded]")
    assert visitor.do(visitor.page.locator(".cty-live").count()) == 0


@pytest.mark.slow
def test_cancel_requires_a_confirmation_and_then_shows_the_result(
    visitor: Visitor, submit: Callable[..., str]
) -> None:
    run = Run.objects.get(id=submit("ok"))
    visitor.open(run_page(run))
    visitor.click("button:has-text('Cancel')")
    visitor.wait_for(f"text={run.id} is canceled")
    assert Run.objects.get().status == "canceled"
    visitor.click("button:has-text('Retry')")
    visitor.wait_for("text=is retried as")
    assert Run.objects.get(retry_of=run.id).status == "queued"


@pytest.mark.slow
def test_untrusted_names_and_bytes_execute_no_script(
    visitor: Visitor, make_run_with_steps: Callable[..., Run], make_artifact: Callable[..., str]
) -> None:
    script_markup = '"><img src=x onerror="window.ran=1"><svg onload="window.ran=1">'
    run = make_run_with_steps(["failed"], result_summary=script_markup)
    run.steps.update(
        name=script_markup, error={"errorCode": script_markup, "message": script_markup}
    )
    artifact_id = make_artifact(
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='parent.ran=1'/>",
        mime_type="image/png",
        name=script_markup,
        run_id=run.id,
    )
    for path in (run_page(run), f"/admin/artifacts/artifact/{artifact_id}/change/", "/admin/"):
        visitor.open(path)
        visitor.do(visitor.page.wait_for_load_state("networkidle"))
        assert visitor.do(visitor.page.evaluate("window.ran")) is None, path


@pytest.mark.slow
def test_a_screenshot_opens_large(
    visitor: Visitor, make_run_with_steps: Callable[..., Run], make_artifact: Callable[..., str]
) -> None:
    run = make_run_with_steps(["succeeded"], status="succeeded")
    make_artifact(JPEG, mime_type="image/jpeg", name="shot.jpg", run_id=run.id, step_index=0)
    visitor.open(run_page(run))
    visitor.click("a[data-zoom]")
    visitor.wait_for("dialog[open] img")
    visitor.click("dialog")
    visitor.do(visitor.page.wait_for_selector("dialog", state="detached"))


@pytest.mark.slow
def test_evidence_and_audit_rows_are_exported_as_verifiable_files(
    visitor: Visitor, submit: Callable[..., str], tmp_path: Path
) -> None:
    run = Run.objects.get(id=submit("ok"))

    async def save(button: str, name: str) -> None:
        async with visitor.page.expect_download() as download:
            await visitor.page.click(f"button:has-text('{button}')")
        await (await download.value).save_as(tmp_path / name)

    visitor.open(run_page(run))
    visitor.do(save("Evidence", "run.jsonl"))
    visitor.open("/admin/decisions/auditentry/?action=run.submitted")
    visitor.do(save("Export the listed rows", "audit.jsonl"))
    evidence, audit = check_bundle(tmp_path / "run.jsonl"), check_bundle(tmp_path / "audit.jsonl")
    assert (evidence.faults, evidence.head["runId"]) == (0, run.id)
    assert (audit.faults, audit.lines["audit"]) == (0, 1)


def waiting_confirmation(principal: Principal) -> Confirmation:
    """Return the confirmation request for one tool call."""
    arguments = {"text": "<b>x</b>"}
    decision = Decision(
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        principal_id="local",
        kind="tool",
        mode="confirm",
        subject_digest="d" * 64,
        tool="submit_form",
        arguments=arguments,
        created_at=datetime.now(UTC),
    )
    decision.sealed_arguments = seal_arguments(decision, arguments)
    decision.save()
    return open_confirmation(decision).confirmation


@pytest.mark.slow
def test_a_person_confirms_a_tool_call_in_the_inbox(visitor: Visitor, principal: Principal) -> None:
    confirmation = waiting_confirmation(principal)
    visitor.open("/admin/")
    visitor.click("a:has-text('inbox')")
    visitor.click("#result_list a:has-text('waiting')")
    visitor.wait_for("pre:has-text('<b>x</b>')")
    visitor.click("button:has-text('Confirm')")
    visitor.wait_for(".cty-big [data-tone=succeeded]")
    confirmation.refresh_from_db()
    assert (confirmation.status, confirmation.decided_by) == ("confirmed", "admin:admin")
    assert visitor.page_errors == []


@pytest.mark.slow
def test_the_title_of_a_call_fits_into_the_inbox_of_a_phone(
    visitor: Visitor, principal: Principal
) -> None:
    confirmation = waiting_confirmation(principal)
    Decision.objects.filter(pk=confirmation.decision_id).update(target_id="target_" + "0" * 57)
    visitor.do(visitor.page.set_viewport_size({"width": 390, "height": 844}))
    visitor.open("/admin/decisions/decision/?status=waiting")
    visitor.wait_for("#result_list b:has-text('target_000')")
    row = visitor.page.locator("#result_list td:has(b)").first
    cell, title = (visitor.do(one.bounding_box()) for one in (row, row.locator("b")))
    assert title["x"] + title["width"] <= 390
    assert cell["y"] <= title["y"]
    assert title["y"] + title["height"] <= cell["y"] + cell["height"]


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["confirm", "refuse"])
def test_a_person_who_is_not_signed_in_decides_through_the_link(
    visitor: Visitor, principal: Principal, answer: str
) -> None:
    confirmation = waiting_confirmation(principal)
    visitor.do(visitor.page.context.clear_cookies())
    visitor.open(urlsplit(confirmation_link(confirmation)).path)
    visitor.wait_for("pre:has-text('<b>x</b>')")
    visitor.click(f"button[value={answer}]")
    visitor.wait_for("text=Decided by link")
    confirmation.refresh_from_db()
    assert confirmation.status == {"confirm": "confirmed", "refuse": "refused"}[answer]
