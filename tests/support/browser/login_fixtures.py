"""Fixtures for tests that log in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from decisions.identity.principals import Principal
from runs.submission.submit import submit_run
from runs.submission.submitted_run import SubmittedRun
from tests.support.browser.login_site import PASSWORD, USERNAME, login_site

SELECTORS = {"mode": "selector", "usernameSelector": "#u", "passwordSelector": "#p"}
WELCOME = {"type": "textIncludes", "value": "Log out", "timeoutMs": 5000}


@pytest.fixture(scope="session")
def members_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a site with a login."""
    with login_site(tmp_path_factory.mktemp("site")) as address:
        yield address


@pytest.fixture
def submit_login(members_site: str, principal: Principal) -> Callable[..., SubmittedRun]:
    """Submit a run that logs in: `submit_login(password="wrong", path="/leaky")`."""

    def make(
        *,
        username: str = USERNAME,
        password: str = PASSWORD,
        path: str = "/login",
        session_id: str | None = None,
        options: dict[str, Any] | None = None,
        **inputs: Any,
    ) -> SubmittedRun:
        fields = {
            "startUrl": members_site + path,
            "credentials": {"username": username, "password": password},
            "fields": SELECTORS,
            "successIndicator": WELCOME,
            **inputs,
        }
        return submit_run(
            principal=principal,
            template_id="login_keep_session",
            session_id=session_id,
            inputs={name: value for name, value in fields.items() if value is not None},
            options={"mode": "async", **(options or {})},
        )

    return make


@pytest.fixture
def submit_read_in_session(principal: Principal) -> Callable[..., str]:
    """Submit a run that reads pages in a session: `submit_read_in_session(session_id, url)`."""

    def make(session_id: str, *urls: str) -> str:
        return submit_run(
            principal=principal,
            template_id="batch_extract_pages",
            session_id=session_id,
            inputs={"urls": list(urls), "concurrency": 1},
            options={"mode": "async"},
        ).run_id

    return make
