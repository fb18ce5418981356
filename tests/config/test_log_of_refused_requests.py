"""Requests that are refused (4xx) write no log line, so that strangers cannot fill the log."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from http import HTTPStatus

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path

from decisions.foundation.security.logs import JSONLines


def fail(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("a defect")


urlpatterns = [path("fails", fail)]


@pytest.fixture
def output() -> Iterator[io.StringIO]:
    """Return what the handler of the settings writes, at the level of the settings."""
    handlers = logging.getLogger().handlers
    (handler,) = (one for one in handlers if isinstance(one.formatter, JSONLines))
    assert isinstance(handler, logging.StreamHandler)
    before = handler.setStream(output := io.StringIO())
    yield output
    if before is not None:
        handler.setStream(before)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("method", "url", "status"),
    [
        ("GET", "/nowhere", HTTPStatus.NOT_FOUND),
        ("POST", "/admin/login/", HTTPStatus.FORBIDDEN),  # without the token against CSRF
        ("GET", "/confirm/cnf_01/0123456789abcdef", HTTPStatus.NOT_FOUND),
        ("DELETE", "/healthz", HTTPStatus.METHOD_NOT_ALLOWED),
    ],
)
def test_a_refused_request_writes_no_log_line(
    output: io.StringIO, method: str, url: str, status: int
) -> None:
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    assert client.generic(method, url).status_code == status
    assert output.getvalue() == ""


@pytest.mark.django_db(transaction=True)
def test_a_call_with_an_unknown_token_writes_no_log_line(output: io.StringIO) -> None:
    headers = {"Authorization": "Bearer cty_nothing"}
    assert Client().get("/api/v1/runs", headers=headers).status_code == HTTPStatus.UNAUTHORIZED
    assert output.getvalue() == ""


@pytest.mark.django_db
def test_a_request_for_another_host_writes_no_log_line(output: io.StringIO) -> None:
    answer = Client().get("/admin/login/", headers={"Host": "evil.example"})
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert output.getvalue() == ""


@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=10)
@pytest.mark.django_db
def test_a_request_that_django_finds_suspicious_writes_no_log_line(output: io.StringIO) -> None:
    answer = Client().post("/admin/login/", {"username": "x" * 100})
    assert 400 <= answer.status_code < 500
    assert output.getvalue() == ""


@override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=[])
def test_a_request_that_fails_writes_a_log_line_with_its_traceback(output: io.StringIO) -> None:
    assert Client(raise_request_exception=False).get("/fails").status_code == 500
    line = json.loads(output.getvalue())
    assert (line["logger"], line["level"], line["status_code"]) == ("django.request", "error", 500)
    assert "RuntimeError: a defect" in line["exception"]
