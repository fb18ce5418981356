"""Masking of secret values in texts, JSON and bytes."""

from __future__ import annotations

import json
from urllib.parse import quote_plus

from hypothesis import given
from hypothesis import strategies as st

from decisions.foundation.security.logs import hiding, redact
from decisions.foundation.security.masking import Masker


def test_a_value_is_masked_in_url_json_and_html_encodings() -> None:
    secret = 'pa ss"<word>&1'
    masker = Masker([secret])
    for encoded in (
        secret,
        quote_plus(secret),
        json.dumps({"p": secret}),
        "pa ss&quot;&lt;word&gt;&amp;1",
    ):
        assert "word" not in masker.text(f"before {encoded} after")


def test_a_short_value_is_masked_only_as_a_separate_word() -> None:
    masker = Masker(["pass"])
    assert masker.text("pass, passing, ?p=pass&q") == "***, passing, ?p=***&q"


def test_a_one_character_value_is_not_masked() -> None:
    assert Masker(["p"]).text("#p") == "#p"
    assert not Masker(["p", ""])


def test_json_is_masked_in_keys_and_nested_values() -> None:
    encoded = Masker(["hunter2222"]).value({"a": ["hunter2222", 5, None], "hunter2222": True})
    assert encoded == {"a": ["***", 5, None], "***": True}


def test_credentials_of_urls_rename_no_field_and_hide_no_word() -> None:
    masker = Masker(url_credentials=["refusedFields", "k3y-9f8e7d6c"])
    shown = masker.value({"refusedFields": ["refusedFields", "sent k3y-9f8e7d6c", "/?token=ab"]})
    assert shown == {"refusedFields": ["refusedFields", "sent ***", "/?token=***"]}
    assert Masker().value("/?token=ab") == "/?token=ab"


def test_bytes_are_masked_only_in_text_formats() -> None:
    masker = Masker(["hunter2222"])
    assert masker.data(b"\xff hunter2222", "text/html") == b"\xff ***"
    assert masker.data(b'{"a":"hunter2222"}', "application/json") == b'{"a":"***"}'
    assert masker.data(b"hunter2222", "image/jpeg") == b"hunter2222"


def test_logs_mask_the_secrets_in_use() -> None:
    with hiding(Masker(["hunter2222"])):
        assert redact("it was hunter2222") == "it was ***"
    assert redact("it was hunter2222") == "it was hunter2222"


@given(st.text(min_size=8), st.text(), st.text())
def test_a_long_value_is_always_masked(secret: str, before: str, after: str) -> None:
    masked = Masker([secret]).text(before + secret + after)
    assert secret not in masked.replace("***", "\0" if "\0" not in secret else "\1")
