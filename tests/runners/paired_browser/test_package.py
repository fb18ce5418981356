"""The zip file of the browser extension, and the page scripts in it."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from runners.browser.page_scripts import extension_scripts
from runners.paired_browser.connections.hub import NOT_PAIRED
from runners.paired_browser.package import FOLDER, pack_extension


def unpacked(data: bytes) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(data))


def test_the_extension_has_the_page_scripts_of_the_workers_browser() -> None:
    """If this fails, run `make extension`."""
    generated = (FOLDER / "generated").iterdir()
    found = {path.name: path.read_text(encoding="utf-8") for path in generated}
    assert found == extension_scripts()


def test_the_extension_knows_the_code_with_which_the_server_ends_a_pairing() -> None:
    source = (FOLDER / "connection.js").read_text(encoding="utf-8")
    assert f"notPaired: {NOT_PAIRED}," in source


def test_the_zip_file_is_the_same_each_time() -> None:
    assert pack_extension() == pack_extension()


def test_the_zip_file_has_every_file_of_the_extension() -> None:
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    names = sorted(path.relative_to(FOLDER).as_posix() for path in files)
    assert sorted(unpacked(pack_extension()).namelist()) == names


def test_the_admin_of_a_named_server_may_offer_a_pairing() -> None:
    packed = unpacked(pack_extension(["https://continuity.example"]))
    manifest = json.loads(packed.read("manifest.json"))
    assert "https://continuity.example/admin/*" in manifest["externally_connectable"]["matches"]


@pytest.mark.parametrize("origin", ["continuity.example", "https://a.example/x", "ftp://a.example"])
def test_what_is_no_origin_is_refused(origin: str) -> None:
    with pytest.raises(ValueError, match="not an origin"):
        pack_extension([origin])
