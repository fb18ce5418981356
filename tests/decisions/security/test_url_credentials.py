"""Credentials in the query of a URL are found by their names."""

from __future__ import annotations

import pytest

from decisions.security.url_credentials import credentials_in_urls, mask_url_credentials

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
        "see https://example.com/?token=abcdefgh in the manual",
        {"n": 5, "none": None},
    ],
)
def test_other_values_are_none(value: object) -> None:
    assert credentials_in_urls(value) == set()
