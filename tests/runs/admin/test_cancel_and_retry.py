"""Cancel and retry in the admin site: through the services, by POST only, audited."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.contrib.messages import get_messages
from django.test import Client

from decisions.models import AuditEntry
from runs.models import Run


def post(client: Client, run: Run | str, action: str) -> tuple[str, str]:
    """Post an action and return the address of the redirect and the message."""
    run_id = run if isinstance(run, str) else run.id
    response = client.post(f"/admin/runs/run/{run_id}/{action}/")
    assert response.status_code == 302
    return response["Location"], " ".join(
        str(message) for message in get_messages(response.wsgi_request)
    )


def run_list_action(client: Client, action: str, *runs: Run, **more: str) -> str:
    """Run a list action on selected runs and return the texts of the results."""
    selection = {"action": action, "_selected_action": [run.id for run in runs], **more}
    response = client.post("/admin/runs/run/", selection)
    assert response.status_code == 200
    groups = response.context["groups"]
    return " ".join(one.text for group in groups for one in group["results"])


def test_cancel_cancels_the_run_and_names_the_operator(
    superuser_client: Client, submit: Callable[..., str]
) -> None:
    run_id = submit("ok")
    page, message = post(superuser_client, run_id, "cancel")
    assert Run.objects.get(id=run_id).status == "canceled"
    assert AuditEntry.objects.get(action="run.canceled").actor == "admin:boss"
    assert page.endswith(f"/{run_id}/change/")
    assert "is canceled" in message


def test_cancel_of_an_ended_run_reports_that_it_has_ended(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    assert "already ended" in post(superuser_client, make_run(status="succeeded"), "cancel")[1]
    old = make_run(status="succeeded", ended_at=datetime.now(UTC) - timedelta(days=2))
    assert "already ended" in post(superuser_client, old, "cancel")[1]


def test_retry_links_to_the_new_run_and_a_second_retry_returns_the_same(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    run = make_run(status="failed")
    page, message = post(superuser_client, run, "retry")
    new_run = Run.objects.get(retry_of=run.id)
    assert page.endswith(f"/{new_run.id}/change/")
    assert "is retried" in message
    again, message = post(superuser_client, run, "retry")
    assert again == page
    assert "was already retried" in message


def test_retry_of_a_succeeded_or_running_run_is_rejected_with_a_message(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    for status in ("succeeded", "running", "queued"):
        assert "cannot be retried" in post(superuser_client, make_run(status=status), "retry")[1]


def test_a_run_of_a_remote_caller_gains_no_trust_by_a_retry(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    browser = {"template_id": "batch_extract_pages", "inputs": {"urls": ["http://127.0.0.1/"]}}
    run = make_run(status="failed", trust="remote", **browser)
    post(superuser_client, run, "retry")
    assert Run.objects.get(retry_of=run.id).trust == "remote"


def test_an_action_needs_its_permission(
    staff_client: Callable[..., Client], make_run: Callable[..., Run]
) -> None:
    run, viewer = make_run(), staff_client("runs.view_run")
    assert viewer.post(f"/admin/runs/run/{run.id}/cancel/").status_code == 403
    assert viewer.post(f"/admin/runs/run/{run.id}/retry/").status_code == 403
    selection = {"action": "cancel_selected", "_selected_action": [run.id]}
    assert viewer.post("/admin/runs/run/", selection).status_code == 302  # there is no such action
    assert Run.objects.get().status == "queued"
    operator = staff_client("runs.view_run", "runs.change_run")
    assert operator.post(f"/admin/runs/run/{run.id}/cancel/").status_code == 302
    assert Run.objects.get().status == "canceled"


def test_an_action_is_a_post_from_the_same_site(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    run = make_run()
    assert superuser_client.get(f"/admin/runs/run/{run.id}/cancel/").status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = superuser_client.cookies
    assert strict.post(f"/admin/runs/run/{run.id}/cancel/").status_code == 403
    assert Run.objects.get().status == "queued"


def test_an_unknown_run_is_not_found(superuser_client: Client) -> None:
    assert superuser_client.post("/admin/runs/run/run_unknown/cancel/").status_code == 404


def test_only_selected_runs_are_canceled(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    one, two, other = make_run(), make_run(), make_run()
    assert "is canceled" in run_list_action(superuser_client, "cancel_selected", one, two)
    statuses = dict(Run.objects.values_list("id", "status"))
    assert statuses == {one.id: "canceled", two.id: "canceled", other.id: "queued"}


def test_selected_runs_are_retried(superuser_client: Client, make_run: Callable[..., Run]) -> None:
    failed, succeeded = make_run(status="failed"), make_run(status="succeeded")
    message = run_list_action(superuser_client, "retry_selected", failed, succeeded)
    assert Run.objects.filter(retry_of=failed.id).exists()
    assert "cannot be retried" in message
