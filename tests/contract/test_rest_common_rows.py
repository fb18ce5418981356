"""Test the rows about all of REST (`rest:any`) on routes of every kind, and downloads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from runs.queries import runs
from tests.contract.bad_inputs import Row
from tests.contract.rest_calls import rest_rows
from tests.support.rest.rest import code_of, refusal

ANY = rest_rows("rest:any")
DOWNLOADS = rest_rows("rest:artifact-download")
PATHS = (
    "/api/v1/runs",
    "/api/v1/templates",
    "/api/v1/runs/run_x",
    "/api/v1/runs/run_x/events",
    "/api/v1/artifacts/art_x",
)
Get = Callable[..., list[httpx.Response]]


def rows_with(name: str) -> Any:
    """Parametrize over the rows that have this input."""
    found = [row for row in ANY if name in row.input]
    assert found
    return pytest.mark.parametrize("row", found, ids=str)


def check(response: httpx.Response, row: Row) -> None:
    if row.expect_code.startswith("HTTP_"):
        assert refusal(response, int(row.expect_code.removeprefix("HTTP_")))
    else:
        assert code_of(response) == row.expect_code


def test_every_row_has_its_test() -> None:
    covered = {"auth", "host", "path", "header_bytes", "burst", "format", "ordering", "exception"}
    assert {next(iter(row.input)) for row in ANY} == covered


@rows_with("auth")
@pytest.mark.parametrize("path", PATHS)
def test_a_request_without_a_token_is_refused(anonymous: httpx.Client, path: str, row: Row) -> None:
    check(anonymous.get(path), row)


@rows_with("host")
@pytest.mark.parametrize("path", [*PATHS, "/healthz", "/readyz", "/metrics", "/api/schema"])
def test_a_foreign_host_name_is_refused(api: httpx.Client, path: str, row: Row) -> None:
    check(api.get(path, headers={"Host": row.input["host"]}), row)


@rows_with("path")
def test_a_person_without_staff_rights_is_sent_to_the_login(
    web: str, principal: object, row: Row
) -> None:
    browser = Client()
    browser.force_login(User.objects.create_user("guest"))
    cookies = {name: morsel.value for name, morsel in browser.cookies.items()}
    response = httpx.get(web + row.input["path"], cookies=cookies)
    assert f"HTTP_{response.status_code}" == row.expect_code
    assert response.headers["location"].startswith("/admin/login/")


@pytest.mark.slow
@rows_with("burst")
def test_a_burst_of_requests_is_throttled(
    api: httpx.Client, row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A low limit, because a slow machine may not send a hundred requests per second.
    monkeypatch.setattr(settings, "THROTTLE_PER_SECOND", 5)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: api.get(PATHS[2]), range(row.input["burst"])))
    throttled = [answer for answer in answers if answer.status_code != 404]
    assert throttled
    for answer in throttled:
        check(answer, row)


@rows_with("format")
@pytest.mark.parametrize("path", PATHS)
def test_another_format_is_refused(api: httpx.Client, path: str, row: Row) -> None:
    check(api.get(path, params={"format": row.input["format"]}), row)


@rows_with("ordering")
@pytest.mark.parametrize("path", PATHS)
def test_an_order_by_another_column_is_refused(api: httpx.Client, path: str, row: Row) -> None:
    check(api.get(path, params={"ordering": row.input["ordering"]}), row)


@rows_with("exception")
@pytest.mark.parametrize("path", ["/api/v1/runs/run_x", "/api/v1/runs/run_x/wait"])
def test_a_defect_gets_its_code(
    api: httpx.Client, monkeypatch: pytest.MonkeyPatch, path: str, row: Row
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError(f'{row.input["exception"]} in File "/srv/x.py": SELECT 1')

    for read in ("get_run", "get_run_row"):
        monkeypatch.setattr(runs, read, fail)
    response = api.get(path)
    check(response, row)
    assert response.json()["errorCode"] == "EXECUTION_ERROR"
    assert response.json()["details"]["errorId"].startswith("err_")


@pytest.mark.parametrize("row", DOWNLOADS, ids=str)
def test_a_download_executes_no_content(
    api: httpx.Client, make_artifact: Callable[..., str], row: Row
) -> None:
    kind, _, name = row.input["artifact"].partition(' "')
    is_named = kind == "filename"
    artifact_id = make_artifact(
        b"<script>alert(1)</script>",
        name=name.rstrip('"') if is_named else "page",
        mime_type="image/png" if is_named else kind.split()[0],
    )
    response = api.get(f"/api/v1/artifacts/{artifact_id}/content")
    assert code_of(response) == row.expect_code
    assert response.headers["content-disposition"].startswith("attachment")
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in response.headers["content-security-policy"]
    assert not {"set-cookie", "x-added"} & set(response.headers)
