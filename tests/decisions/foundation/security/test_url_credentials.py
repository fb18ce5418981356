"""Credentials in the query of a URL are found by their names."""

from __future__ import annotations

import pytest

from decisions.foundation.security.url_credentials import (
    KnownUrls,
    credentials_in_urls,
    mask_url_credentials,
)

SECRET = "canary%2F88-12"


@pytest.mark.parametrize(
    "name",
    [
        "access_token",
        "token",
        "api_key",
        "apikey",
        "password",
        "client_secret",
        "X-Amz-Signature",
        "X-Amz-Credential",
        "sig",
        "Auth",
    ],
)
def test_a_credential_in_a_query_is_found_and_masked(name: str) -> None:
    url = f"https://example.com/a?page=2&{name}={SECRET}&b=1#x"
    assert credentials_in_urls({"urls": ["http://x/", url]}) == {SECRET, "canary/88-12"}
    masked = f"https://example.com/a?page=2&{name}=***&b=1#x"
    assert credentials_in_urls(f"read {url} twice") == {SECRET, "canary/88-12"}
    assert mask_url_credentials(f"read {url}") == f"read {masked}"


@pytest.mark.parametrize(
    ("query", "masked"),
    [
        ("access%5Ftoken=abc", "access%5Ftoken=***"),
        ("acc%65ss_token=abc", "acc%65ss_token=***"),
        ("access_token[]=abc", "access_token[]=***"),
        ("accessToken%20=abc", "accessToken%20=***"),
        ("token=ab'rest&b=1", "token=***&b=1"),
        ("token=ab;rest&b=1", "token=***&b=1"),
        ("a=1;token=abc&b=1", "a=1;token=***&b=1"),
        ("a=1#token=abc", "a=1#token=***"),
    ],
)
def test_a_credential_is_found_however_it_is_written(query: str, masked: str) -> None:
    assert mask_url_credentials(f"http://x/?{query}") == f"http://x/?{masked}"
    value = query.replace(masked.partition("***")[0], "").removesuffix(masked.partition("***")[2])
    assert credentials_in_urls(f" http://x/?{query}") == {value}


@pytest.mark.parametrize(
    "value",
    [
        "https://example.com/?page=2&tokens_used=12345678",
        "https://example.com/token=abcdefgh",
        {"n": 5, "none": None},
    ],
)
def test_other_values_are_none(value: object) -> None:
    assert credentials_in_urls(value) == set()


@pytest.mark.parametrize(
    ("url", "opened"),
    [
        ("https://a.test/x?token=***&b=1", "https://a.test/x?token=first-1&b=1"),
        ("HTTPS://A.test/y?b=1&token=***", "HTTPS://A.test/y?b=1&token=first-1"),
        ("https://b.test/?token=***", "https://b.test/?token=***"),  # there are two of these
        ("https://other.test/?token=***", "https://other.test/?token=***"),
        ("http://a.test/x?token=***", "http://a.test/x?token=***"),
        ("https://a.test/x?key_token=***", "https://a.test/x?key_token=***"),
        ("https://a.test/x?token=***2", "https://a.test/x?token=***2"),
    ],
)
def test_a_masked_url_is_opened_with_the_credential_of_its_origin(url: str, opened: str) -> None:
    known = KnownUrls(
        {
            "goal": "Read https://a.test/x?token=first-1, then https://b.test/?token=second-2.",
            "startUrl": "https://b.test/?token=third-3",
        }
    )
    assert known.restored({"url": url, "tabId": 1}) == {"url": opened, "tabId": 1}
    assert known.restored({"text": url}) == {"text": url}
