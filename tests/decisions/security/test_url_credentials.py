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
    "value",
    [
        "https://example.com/?page=2&tokens_used=12345678",
        "https://example.com/token=abcdefgh",
        "https://example.com/?token=short",
        "see https://example.com/?token=abcdefgh in the manual",
        {"n": 5, "none": None},
    ],
)
def test_other_values_are_none(value: object) -> None:
    assert credentials_in_urls(value) == set()
