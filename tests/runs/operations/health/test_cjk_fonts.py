"""CJK fonts: when the setup script installs them, and what `manage.py doctor` reports."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from runs.operations.health.checks import check_fonts

ROOT = Path(__file__).parents[4]
FC_LIST = '#!/bin/sh\n[ "$*" = "-q :lang=zh" ] && [ -e {0}/cjk-font ]\n'
APT_GET = """#!/bin/sh
for last; do :; done
echo "$last" >> {0}/installed
[ -e {0}/offline ] && exit 1
case "$last" in
fontconfig)
    {{ echo '#!/bin/sh'; echo '[ -e {0}/cjk-font ]'; }} > {0}/fc-list
    chmod +x {0}/fc-list;;
fonts-wqy-microhei) : > {0}/cjk-font;;
esac
"""
WARNING = "No font for Chinese, Japanese or Korean was found: screenshots show boxes in place of"


class Machine:
    """A Linux machine whose PATH has only the programs that a test adds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add_program(self, name: str, script: str = "") -> None:
        path = self.folder / name
        path.write_text(script.format(self.folder))
        path.chmod(0o755)

    def requested_packages(self) -> list[str]:
        """Return the packages that apt-get was called to install, in order."""
        log = self.folder / "installed"
        return log.read_text().split() if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    (tmp_path / "bin").mkdir()
    machine = Machine(tmp_path / "bin")
    machine.add_program("chmod", f'#!/bin/sh\nexec {shutil.which("chmod")} "$@"\n')
    machine.add_program("apt-get", APT_GET)
    monkeypatch.setenv("PATH", str(machine.folder))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "getuid", lambda: 0)
    return machine


@pytest.fixture
def setup_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the setup script as a module."""
    spec = importlib.util.spec_from_file_location("setup_script", ROOT / ".ci" / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "FONTS_TRIED_FILE", tmp_path / "fonts-tried")
    return module


def test_nothing_is_installed_or_printed_when_a_cjk_font_exists(
    setup_script: ModuleType, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.add_program("fc-list", FC_LIST)
    machine.add_program("cjk-font")
    setup_script.install_fonts()
    assert (machine.requested_packages(), capsys.readouterr().out) == ([], "")


def test_a_missing_cjk_font_is_installed_and_reported_in_one_line(
    setup_script: ModuleType, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.add_program("fc-list", FC_LIST)
    setup_script.install_fonts()
    assert machine.requested_packages() == ["fonts-wqy-microhei"]
    output = capsys.readouterr().out
    assert (output.startswith("  fonts (Debian packages) … "), output.count("\n")) == (True, 1)


@pytest.mark.parametrize("has_font", [False, True])
def test_fontconfig_is_installed_first_when_fc_list_is_missing(
    setup_script: ModuleType, machine: Machine, has_font: bool
) -> None:
    if has_font:
        machine.add_program("cjk-font")
    setup_script.install_fonts()
    assert machine.requested_packages() == ["fontconfig"] + ["fonts-wqy-microhei"] * (not has_font)


def test_without_root_one_line_reports_the_missing_font(
    setup_script: ModuleType,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    setup_script.install_fonts()
    output = capsys.readouterr().out
    assert (machine.requested_packages(), WARNING in output, output.count("\n")) == ([], True, 1)


def test_a_failed_install_is_tried_once_and_does_not_fail_the_setup(
    setup_script: ModuleType, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.add_program("fc-list", FC_LIST)
    machine.add_program("offline")
    setup_script.install_fonts()
    tried = machine.requested_packages()
    setup_script.install_fonts()
    assert machine.requested_packages() == tried
    assert "fonts-wqy-microhei" in tried
    assert capsys.readouterr().out.count(WARNING) == 2


@pytest.mark.parametrize(
    ("installed", "verdict", "text"),
    [
        (["fc-list", "cjk-font"], "ok", "Chinese characters are shown"),
        (["fc-list"], "note", "none for Chinese"),
        ([], "note", "fc-list is missing"),
    ],
)
def test_doctor_reports_whether_screenshots_show_chinese(
    machine: Machine, installed: list[str], verdict: str, text: str
) -> None:
    for name in installed:
        machine.add_program(name, FC_LIST)
    result = check_fonts()
    assert (result.verdict, text in result.what) == (verdict, True)
    assert ("fonts-wqy-microhei" in result.recovery) == (verdict == "note")
