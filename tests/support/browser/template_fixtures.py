"""Fixtures for tests that execute templates in a real browser, on local sites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from decisions.identity.principals import Principal
from runners.browser.pool.runtime import get_runtime
from runners.invocation.event_loop import get_loop
from runs.models import Run
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.browser.page_server import serve_pages
from tests.support.browser.template_sites import RunTemplate, Site


@pytest.fixture
def site() -> Iterator[Site]:
    """Yield a server with the sites for the templates."""
    with serve_pages() as server:
        yield Site(server).open()


@pytest.fixture(scope="session")
def close_browser() -> Iterator[None]:
    """Close this process's browser after its last test."""
    yield
    get_loop().submit(get_runtime().close()).result(30)


@pytest.fixture
def submit_template(principal: Principal) -> Callable[..., str]:
    """Submit a run of a template and return its id: `submit_template("search_extract", …)`."""

    def make(template_id: str, *, timeout_ms: int = 100_000, **inputs: Any) -> str:
        options = {"mode": "async", "timeoutMs": timeout_ms}
        submitted = submit_run(
            principal=principal, template_id=template_id, inputs=inputs, options=options
        )
        return submitted.run_id

    return make


@pytest.fixture
def run_template(
    submit_template: Callable[..., str], worker: WorkerProcess, close_browser: None
) -> RunTemplate:
    """Submit a run of a template, execute it, and return it; it must have ended."""

    def make(template_id: str, **inputs: Any) -> Run:
        run_id = submit_template(template_id, **inputs)
        worker.work()
        run = Run.objects.get(id=run_id)
        assert run.ended_at is not None, run.status
        return run

    return make
