"""The address of a static file has the version of its content, for which browsers keep it."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from django.templatetags.static import static
from django.test import Client

from config.http.static_files import MAY_CHANGE, UNCHANGED, cache_control, version_of

SCRIPT = "continuity/admin.js"


def test_a_file_whose_content_changed_has_another_version(tmp_path: Path) -> None:
    script = tmp_path / "a.js"
    script.write_text("1")
    first = version_of(script)
    script.write_text("22")
    assert version_of(script) not in ("", first)
    script.write_text("1")
    assert version_of(script) == first
    assert version_of(tmp_path / "none.js") == ""


def test_only_the_version_of_the_content_is_kept_for_long(tmp_path: Path) -> None:
    script = tmp_path / "a.js"
    script.write_text("1")
    assert cache_control(script, version_of(script)) == UNCHANGED
    # of a page of the next release, while this process still has the earlier file
    assert cache_control(script, "0123456789ab") == MAY_CHANGE
    assert cache_control(script, "") == MAY_CHANGE


def test_each_script_and_style_of_a_page_is_requested_by_its_version(
    superuser_client: Client,
) -> None:
    page = superuser_client.get("/admin/").content.decode()
    found = re.findall(r'(?:src|href)="(/static/[^"]+|/admin/texts/[^"]+)"', page)
    assert len(found) > 10
    assert [address for address in found if "?v=" not in address] == []


def test_a_page_finds_its_files_by_these_addresses(web: str) -> None:
    address = f"{web}{static(SCRIPT)}"
    answer = httpx.get(address)
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, UNCHANGED)
    again = httpx.get(address, headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.headers["Cache-Control"]) == (304, UNCHANGED)
    assert httpx.get(f"{web}/static/{SCRIPT}").headers["Cache-Control"] == MAY_CHANGE
    assert httpx.get(f"{web}/static/continuity/none.js?v=1").status_code == 404


@pytest.mark.parametrize("name", ["continuity/none.js", "continuity", ""])
def test_what_is_no_file_has_an_address_without_a_version(name: str) -> None:
    assert "?v=" not in static(name)
