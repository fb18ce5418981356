"""The language of pages: chosen with the switch, else the browser's; APIs stay English."""

from __future__ import annotations

import re

import httpx
import pytest
from django.test import Client
from django.utils import translation

CHINESE = {"Accept-Language": "zh-CN,zh;q=0.9"}


@pytest.fixture(autouse=True)
def in_english() -> object:
    """Leave the language of this thread as it was."""
    with translation.override("en"):
        yield


def language_of(page: bytes) -> str:
    """Return the language that a page states."""
    found = re.search(r'<html lang="([^"]*)"', page.decode())
    assert found is not None
    return found.group(1)


def test_the_switch_chooses_the_language_of_the_next_pages(superuser_client: Client) -> None:
    chosen = superuser_client.post("/admin/language/", {"language": "zh-hans", "next": "/admin/"})
    page = superuser_client.get("/admin/runs/run/").content
    assert (chosen.status_code, chosen["Location"]) == (302, "/admin/")
    assert language_of(page) == "zh-hans"
    assert "运行" in page.decode()


def test_without_a_choice_the_browser_decides(principal: object) -> None:
    assert language_of(Client().get("/admin/login/").content) == "en"
    page = Client().get("/admin/login/", headers=CHINESE)
    assert language_of(page.content) == "zh-hans"
    assert "Accept-Language" in page["Vary"]


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "javascript:alert(1)"]
)
def test_the_switch_leads_to_no_other_site(principal: object, target: str) -> None:
    chosen = Client().post("/admin/language/", {"language": "zh-hans", "next": target})
    assert chosen["Location"] == "/"


def test_an_unknown_language_is_not_stored(principal: object) -> None:
    chosen = Client().post("/admin/language/", {"language": "xx", "next": "/admin/"})
    assert "continuity_language" not in chosen.cookies
    assert Client().get("/admin/language/").status_code == 405
    assert Client().get("/admin/texts/xx.js").status_code == 404


def test_the_texts_of_scripts_are_in_the_language_of_the_page(principal: object) -> None:
    chinese, english = (Client().get(f"/admin/texts/{one}.js") for one in ("zh-hans", "en"))
    assert b"\\u521a\\u521a" in chinese.content
    assert "服务器没有响应".encode("unicode-escape") in chinese.content  # refresh.js
    assert "just now" not in english.content.decode()
    assert chinese["Cache-Control"] == "public, max-age=86400"


def test_the_api_answers_in_english_whatever_the_browser_prefers(anonymous: httpx.Client) -> None:
    answer = anonymous.get("/api/v1/runs", headers=CHINESE)
    assert answer.status_code == 401
    assert answer.json()["message"].isascii()
