"""Taking secret values out of texts, JSON and bytes."""

from __future__ import annotations

import json
from urllib.parse import quote_plus

from hypothesis import given
from hypothesis import strategies as st

from decisions.security.logs import hiding, redact
from decisions.security.masking import Masker


def test_a_value_is_masked_as_addresses_json_and_html_write_it() -> None:
    secret = 'pa ss"<word>&1'
    masker = Masker([secret])
    for told in (
        secret,
        quote_plus(secret),
        json.dumps({"p": secret}),
        "pa ss&quot;&lt;word&gt;&amp;1",
    ):
        assert "word" not in masker.text(f"before {told} after")


def test_a_short_value_counts_only_where_it_stands_by_itself() -> None:
    masker = Masker(["pass"])
    assert masker.text("pass, passing, ?p=pass&q") == "***, passing, ?p=***&q"


def test_a_tiny_value_is_not_looked_for() -> None:
    assert Masker(["p"]).text("#p") == "#p"
    assert not Masker(["p", ""])


def test_json_is_masked_through_and_through() -> None:
    told = Masker(["hunter2222"]).value({"a": ["hunter2222", 5, None], "hunter2222": True})
    assert told == {"a": ["***", 5, None], "***": True}


def test_bytes_are_masked_where_they_are_text() -> None:
    masker = Masker(["hunter2222"])
    assert masker.data(b"\xff hunter2222", "text/html") == b"\xff ***"
    assert masker.data(b'{"a":"hunter2222"}', "application/json") == b'{"a":"***"}'
    assert masker.data(b"hunter2222", "image/jpeg") == b"hunter2222"


def test_logs_hide_what_is_being_worked_with() -> None:
    with hiding(Masker(["hunter2222"])):
        assert redact("it was hunter2222") == "it was ***"
    assert redact("it was hunter2222") == "it was hunter2222"


@given(st.text(min_size=8), st.text(), st.text())
def test_no_long_value_survives(secret: str, before: str, after: str) -> None:
    masked = Masker([secret]).text(before + secret + after)
    assert secret not in masked.replace("***", "\0" if "\0" not in secret else "\1")
