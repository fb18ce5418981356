"""Test how a person views and restores a snapshot in a real Chromium."""

from __future__ import annotations

import pytest

from runners.models import ExecutionTarget
from runners.workspace.workspace import ProjectWorkspace
from tests.support.admin.visitor import Visitor
from tests.support.workspace.workspace_calls import SCENE, SCENE_TEXT


@pytest.mark.slow
def test_a_person_compares_previews_and_restores_a_snapshot(
    visitor: Visitor, folder_target: ExecutionTarget, written_workspace: ProjectWorkspace
) -> None:
    visitor.open("/admin/")
    visitor.click("a:has-text('Targets')")
    visitor.click("#result_list a:has-text('My game')")
    visitor.click("a:has-text('Snapshots')")
    visitor.click("#snapshots tbody tr:first-child a")
    visitor.wait_for("tr[data-kind=changed] td[data-side=left] mark:has-text('5')")
    red = visitor.do(
        visitor.page.evaluate(
            "getComputedStyle(document.querySelector('[data-kind=removed] [data-side=left]'))"
            ".backgroundColor"
        )
    )
    assert red not in ("rgba(0, 0, 0, 0)", "")
    visitor.click("button:has-text('Restore')")
    visitor.wait_for("text=Nothing is written yet")
    assert (written_workspace.root / SCENE).read_text() != SCENE_TEXT
    visitor.click("button:has-text('Write file')")
    visitor.wait_for("text=There is no difference")
    assert (written_workspace.root / SCENE).read_text() == SCENE_TEXT


@pytest.mark.slow
def test_file_contents_execute_no_script_on_the_page(
    visitor: Visitor, folder_target: ExecutionTarget, written_workspace: ProjectWorkspace
) -> None:
    (written_workspace.root / SCENE).write_text('</td><img src=x onerror="window.ran=1">\u202e')
    visitor.open(f"/admin/runners/executiontarget/{folder_target.id}/snapshots/")
    visitor.click("#snapshots tbody tr:first-child a")
    visitor.wait_for("td:has-text('onerror')")
    assert visitor.do(visitor.page.evaluate("window.ran")) is None
    assert "\\u202e" in visitor.do(visitor.page.content())
