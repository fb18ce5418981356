"""Tries of admin passwords: limited by address and by name, in all web processes together."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from decisions.admin import sign_in
from decisions.audit.anonymous_events import write_counted_events
from decisions.identity.sign_in_limits import FREE_TRIES, Count, SignInLimiter
from decisions.models import AuditEntry
from tests.support.runs.concurrent_calls import at_once

LOGIN = "/admin/login/"
PASSWORD = "correct horse battery"


def address() -> str:
    """Return a client address that no other test has used."""
    return f"2001:db8:{secrets.token_hex(2)}:{secrets.token_hex(2)}::1"


def post(client: Client, name: str, password: str = "", peer: str = "") -> Any:
    """Send the form of the sign-in page, by default with a wrong password."""
    form = {"username": name, "password": password or "wrong"}
    return client.post(LOGIN, form, REMOTE_ADDR=peer or address())


@pytest.fixture
def operator(db: None, settings: Any) -> User:
    """Return an operator with a password and a name that no other test has used."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return User.objects.create_superuser(f"ann-{secrets.token_hex(4)}", password=PASSWORD)


def test_one_address_has_to_wait_after_many_tries(operator: User) -> None:
    client, peer = Client(), address()
    tries = [post(client, f"name-{n}", peer=peer).status_code for n in range(FREE_TRIES + 1)]
    assert tries == [200] * (FREE_TRIES + 1)
    refused = post(client, operator.username, PASSWORD, peer=peer)
    assert refused.status_code == 429
    assert 1 <= int(refused["Retry-After"]) <= 2
    assert "Too many tries. Wait" in refused.content.decode()
    assert "_auth_user_id" not in client.session
    assert post(Client(), operator.username, PASSWORD).status_code == 302  # another address


def test_tries_of_one_name_from_many_addresses_have_to_wait(operator: User) -> None:
    for _ in range(FREE_TRIES + 1):
        assert post(Client(), operator.username).status_code == 200
    assert post(Client(), operator.username).status_code == 429
    assert post(Client(), "another name").status_code == 200


def test_a_browser_that_signed_in_before_does_not_wait_for_the_tries_of_others(
    operator: User,
) -> None:
    mine = Client()
    assert post(mine, operator.username, PASSWORD).status_code == 302
    mine.post("/admin/logout/")
    for _ in range(FREE_TRIES + 2):
        post(Client(), operator.username)
    assert post(Client(), operator.username, PASSWORD).status_code == 429
    assert post(mine, operator.username, PASSWORD).status_code == 302


def test_the_cookie_of_one_name_or_a_forged_one_does_not_help_with_another(operator: User) -> None:
    mine = Client()
    post(mine, operator.username, PASSWORD)
    peer = address()
    for _ in range(FREE_TRIES + 1):
        post(mine, "another name", peer=peer)
    assert post(mine, "another name", peer=peer).status_code == 429
    forged = Client()
    forged.cookies["continuity_browser"] = "guessed:signature"
    assert post(forged, "another name", peer=peer).status_code == 429


def test_the_browsers_own_count_is_limited_too(operator: User) -> None:
    mine = Client()
    post(mine, operator.username, PASSWORD)
    tries = [post(mine, operator.username).status_code for _ in range(FREE_TRIES + 2)]
    assert tries[-1] == 429


def test_right_passwords_are_not_counted(operator: User) -> None:
    client, peer = Client(), address()
    tries = [
        post(client, operator.username, PASSWORD, peer=peer).status_code
        for _ in range(2 * FREE_TRIES)
    ]
    assert set(tries) == {302}


def test_a_wait_grows_and_ends() -> None:
    limiter, counts = SignInLimiter(), [Count(f"test-{secrets.token_hex(8)}", 1)]
    for _ in range(FREE_TRIES + 1):
        assert limiter.begin_try(counts) == 0
    assert limiter.begin_try(counts) == 1
    longer = [Count(f"test-{secrets.token_hex(8)}", 300)]
    for _ in range(FREE_TRIES + 1):
        limiter.begin_try(longer)
    assert limiter.begin_try(longer) == 2


def test_of_concurrent_tries_only_the_free_ones_and_one_more_are_checked() -> None:
    """Each caller has its own limiter, as in several web processes."""
    counts = [Count(f"test-{secrets.token_hex(8)}", 300)]
    waits = at_once([lambda: SignInLimiter().begin_try(counts)] * 24)
    assert sum(wait == 0 for wait in waits) == FREE_TRIES + 1


def test_without_redis_a_process_checks_one_password_a_second(settings: Any, tmp_path: Any) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/none.sock"
    limiter = SignInLimiter()
    waits = [limiter.begin_try([Count("anyone", 300)]) for _ in range(5)]
    assert waits == [0, 1, 1, 1, 1]


def test_a_flood_of_tries_writes_few_rows_and_counts_all(operator: User) -> None:
    client, peer = Client(), address()
    for _ in range(30):
        post(client, operator.username, peer=peer)
    write_counted_events(unfinished=True)
    rows = AuditEntry.objects.filter(action__startswith="operator.sign_in_")
    assert sum(row.metadata["count"] for row in rows) == 30
    assert len(rows) <= 8  # two per action, and the minute may have ended meanwhile
    assert {row.action for row in rows} == {
        "operator.sign_in_failed",
        "operator.sign_in_throttled",
    }
    assert operator.username not in str([(row.resource_id, row.metadata) for row in rows])


def test_the_page_names_the_wait_and_stays_usable(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in._limiter, "begin_try", lambda counts: 1)
    page = post(Client(), operator.username, PASSWORD)
    assert page.status_code == 429
    text = page.content.decode()
    assert "Wait 1 s, then try again." in text
    assert 'name="password"' in text
