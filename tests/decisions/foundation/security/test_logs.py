"""Each log record is one line of JSON without secrets, whatever is logged."""

from __future__ import annotations

import io
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from decisions.foundation.security.logs import JSONLines, RedactSecrets, redact


@pytest.fixture
def log_and_output() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """Yield a logger configured as in the settings, and its output."""
    text, log = io.StringIO(), logging.Logger("tests.logs")  # noqa: LOG001  (an unregistered logger)
    handler = logging.StreamHandler(text)
    handler.addFilter(RedactSecrets())
    handler.setFormatter(JSONLines())
    log.addHandler(handler)
    yield log, text
    handler.close()


TOKEN_ID = "tok_01m81hk07saam9720p08pwkyvf"
SECRETS = {
    "a link that confirms": (
        "Forbidden (Origin checking failed): /confirm/cnf_01m821/e2255a26716c1b72",
        "e2255a26716c1b72",
    ),
    "a link that signs in": ("Not Found: /admin/once/Ab-9_xyz/", "Ab-9_xyz"),
    "our token": ("token cty_abcdefgh12345678 was used", "cty_abcdefgh12345678"),
    "a bearer": ("Authorization: Bearer abc.def-ghi", "abc.def-ghi"),
    "a bearer in small letters": ("authorization: bearer abc.def-ghi", "abc.def-ghi"),
    "a bare bearer": ("sent Bearer abc.def-ghi", "abc.def-ghi"),
    "basic credentials": ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    "credentials as JSON": ('{"Authorization": "Basic dXNlcjpwYXNz"}', "dXNlcjpwYXNz"),
    "a cookie": ("Cookie: session=abc123; other=def456", "def456"),
    "a set cookie": ("Set-Cookie: session=abc123; HttpOnly", "abc123"),
    "a password in an address": ("see http://user:hunter2@example.test/", "hunter2"),
    "a password in a query": ("GET /?password=hunter2&x=1", "hunter2"),
    "a password as JSON": ('{"password": "hunter2"}', "hunter2"),
    "a password with a blank": ('{"password": "hunter two"}', "two"),
    "a password of python": ("{'password': 'hunter2'}", "hunter2"),
    "an api key": ("api_key = sk-12345", "sk-12345"),
    "an api key with a hyphen": ("x-api-key: sk-12345", "sk-12345"),
    "a secret": ("client_secret=hunter2", "hunter2"),
    "a database address": ("postgresql://postgres:hunter2@db:5432/x", "hunter2"),
    "a token that begins as the ids of ours": (
        "?token=tok_1MqLFy2eZvKYlo2C",
        "tok_1MqLFy2eZvKYlo2C",
    ),
    "what follows the id of a token": (f"token:{TOKEN_ID}x8f3", f"{TOKEN_ID}x8f3"),
    "a token of another make": ("token:tok_visa_4242", "tok_visa_4242"),
    "a redis address": ("redis://:hunter2@localhost/0", "hunter2"),
}


@pytest.mark.parametrize("case", SECRETS)
def test_secrets_are_redacted(case: str) -> None:
    text, secret = SECRETS[case]
    assert secret not in redact(text)
    assert "***" in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "12 tokens used",
        "the password was wrong",
        "http://example.test:8000/a@b",
        "a cookie jar",
        "run_01 ended",
        "漢字",
        f"token:{TOKEN_ID} was made",
        f"'token:{TOKEN_ID}'",
    ],
)
def test_ordinary_text_is_not_redacted(text: str) -> None:
    assert redact(text) == text


def test_secrets_in_arguments_extras_and_exceptions_are_redacted(
    log_and_output: tuple[logging.Logger, io.StringIO],
) -> None:
    log, text = log_and_output
    try:
        raise ValueError("password=hunter2")
    except ValueError:
        log.exception("to %s", "http://u:hunter2@h/", extra={"seen": "token=hunter2"})
    log.warning("nested", extra={"facts": {"password": "hunter2", "list": ["Bearer hunter2"]}})
    assert "hunter2" not in text.getvalue()


@pytest.mark.parametrize(
    "text",
    ["two\nlines", "a\rb", "\x1b[31mred", "\u2028", "\u2029", "\x7f", "\x85", "\x9b31m", "\0"],
)
def test_a_record_is_one_line_without_control_characters(
    log_and_output: tuple[logging.Logger, io.StringIO], text: str
) -> None:
    log, out = log_and_output
    log.warning("said %s", text, extra={"also": text})
    line = out.getvalue()
    assert line.endswith("\n")
    assert len(line.splitlines()) == 1
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u2028\u2029" for c in line[:-1])
    record = json.loads(line)
    assert (record["message"], record["also"]) == (f"said {text}", text)


def test_values_that_json_cannot_represent_are_still_logged(
    log_and_output: tuple[logging.Logger, io.StringIO],
) -> None:
    log, out = log_and_output
    values: list[Any] = [object(), {1: 2}, float("nan"), b"\xff", "\ud800", {"a": object()}]
    for value in values:
        log.warning("odd", extra={"value": value})
    assert len(out.getvalue().splitlines()) == len(values)
    out.getvalue().encode()


def test_a_log_call_with_the_wrong_arguments_is_still_logged(
    log_and_output: tuple[logging.Logger, io.StringIO],
) -> None:
    log, out = log_and_output
    log.warning("%d of %s", "x")
    log.warning("%(missing)s", {"other": "token=hunter2"})
    assert len(out.getvalue().splitlines()) == 2
    assert "hunter2" not in out.getvalue()


def test_a_record_has_a_time_a_level_and_a_logger(
    log_and_output: tuple[logging.Logger, io.StringIO],
) -> None:
    log, out = log_and_output
    log.error("it ended", extra={"runId": "run_1"})
    record = json.loads(out.getvalue())
    assert (record["level"], record["logger"], record["runId"]) == ("error", "tests.logs", "run_1")
    assert record["at"].endswith("+00:00")


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000,
        "token" * 40_000,
        "://" * 70_000,
        "password" + " " * 200_000,
        "\\" * 200_000,
        "cookie='" + "x" * 200_000,
        "bearer " * 30_000,
    ],
)
def test_a_long_text_is_redacted_in_under_two_seconds(text: str) -> None:
    started = time.monotonic()
    redact(text)
    assert time.monotonic() - started < 2


def test_the_log_of_the_settings_redacts_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers = logging.getLogger().handlers
    (handler,) = (handler_ for handler_ in handlers if isinstance(handler_.formatter, JSONLines))
    output = io.StringIO()
    monkeypatch.setattr(handler, "stream", output)
    logging.getLogger("tests.settings").error("sent password=hunter2")
    assert json.loads(output.getvalue())["message"] == "sent ***"
