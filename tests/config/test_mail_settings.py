"""The settings of e-mail from the environment: whole or none, and wrong values are named."""

from __future__ import annotations

import environ
import pytest
from django.core.exceptions import ImproperlyConfigured

from config.mail import mail_settings

ADDRESSES = {
    "CONTINUITY_EMAIL_FROM": "c@example.org",
    "CONTINUITY_EMAIL_TO": "a@b.example, c@d.example",
}


def read(monkeypatch: pytest.MonkeyPatch, **variables: str) -> dict[str, object]:
    for name in ("URL", "FROM", "TO"):
        monkeypatch.delenv(f"CONTINUITY_EMAIL_{name}", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return mail_settings(environ.Env())


def test_without_a_url_no_email_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch)["WAITING_EMAIL_TO"] == []


def test_a_url_names_server_encryption_and_account(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "smtp+tls://user:p%40ss@mail.example:587"
    found = read(monkeypatch, CONTINUITY_EMAIL_URL=url, **ADDRESSES)
    assert found["WAITING_EMAIL_TO"] == ["a@b.example", "c@d.example"]
    assert (found["EMAIL_HOST"], found["EMAIL_PORT"], found["EMAIL_USE_TLS"]) == (
        "mail.example",
        587,
        True,
    )
    assert (found["EMAIL_HOST_USER"], found["EMAIL_HOST_PASSWORD"]) == ("user", "p@ss")


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"CONTINUITY_EMAIL_URL": "smtp://mail"}, "CONTINUITY_EMAIL_FROM"),
        ({"CONTINUITY_EMAIL_URL": "http://mail", **ADDRESSES}, "schemes: smtp"),
        ({"CONTINUITY_EMAIL_URL": "smtp://mail:x", **ADDRESSES}, "schemes: smtp"),
        (
            {
                "CONTINUITY_EMAIL_URL": "smtp://mail",
                **ADDRESSES,
                "CONTINUITY_EMAIL_TO": "a@b.example,ops",
            },
            "'ops' is no e-mail address",
        ),
    ],
)
def test_a_wrong_value_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    with pytest.raises(ImproperlyConfigured, match=message):
        read(monkeypatch, **variables)
