"""Fixtures for tests of the admin site."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from decisions.identity.principals import Principal
from runs.models import Run, RunEvent, RunStep

MakeClient = Callable[..., Client]


@pytest.fixture
def superuser_client(principal: Principal) -> Client:
    """Return a client that is signed in as a superuser."""
    return _signed_in(User.objects.create_superuser("boss"))


@pytest.fixture
def staff_client(principal: Principal) -> MakeClient:
    """Sign in a staff user with only these permissions: `staff_client("runs.view_run")`."""

    def make(*permissions: str) -> Client:
        user = User.objects.create_user(f"staff-{User.objects.count()}", is_staff=True)
        for permission in permissions:
            app, _, codename = permission.partition(".")
            user.user_permissions.add(
                Permission.objects.get(content_type__app_label=app, codename=codename)
            )
        return _signed_in(user)

    return make


def _signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def make_run_with_steps(make_run: Callable[..., Run]) -> Callable[..., Run]:
    """Create a run with steps and events: `make_run_with_steps(["succeeded", "started"])`."""

    def make(steps: list[str], **columns: Any) -> Run:
        start = datetime.now(UTC) - timedelta(seconds=30)
        done = sum(status in ("succeeded", "failed") for status in steps)
        run = make_run(
            created_at=start,
            started_at=start,
            total_steps=len(steps),
            done_steps=done,
            last_seq=2,
            **columns,
        )
        RunStep.objects.bulk_create(
            _step(run, index, status, start) for index, status in enumerate(steps)
        )
        for seq, name in enumerate(("run.queued", "run.started"), start=1):
            RunEvent.objects.create(run=run, seq=seq, type=name, at=start, data={"attempt": 1})
        return run

    return make


def _step(run: Run, index: int, status: str, start: datetime) -> RunStep:
    started = start + timedelta(milliseconds=100 * index) if status != "pending" else None
    ended = status in ("succeeded", "failed")
    url = f"https://pages.example/{index}.html"
    error = {"errorCode": "NAVIGATION_TIMEOUT", "message": f"step {index} took too long"}
    return RunStep(
        run=run,
        index=index,
        name=f"read {url}",
        effect="read",
        effect_key=f"{run.id}:{index}",
        input={"url": url},
        status=status,
        attempts=0 if started is None else 1,
        started_at=started,
        ended_at=started + timedelta(milliseconds=80) if started and ended else None,
        output={"title": f"Title {index}", "secret": "x"} if status == "succeeded" else None,
        error=error if status == "failed" else None,
    )
