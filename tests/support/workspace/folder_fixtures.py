"""Fixtures: a folder that tools write to, as a target with two snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from decisions.identity.principals import Principal
from runners.models import ExecutionTarget
from runners.targets.targets import Caller, TargetFields, create_target_row
from runners.targets.workspaces import open_workspace
from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing.write_text import write_text
from tests.support.workspace.workspace_calls import SCENE, SCENE_TEXT


@pytest.fixture
def folder_target(principal: Principal, tmp_path: Path, settings: Any) -> ExecutionTarget:
    """Return a target whose root is a folder of the caller's workspace."""
    settings.WORKSPACE_ROOTS = (tmp_path,)
    (tmp_path / "game").mkdir()
    fields = TargetFields(
        principal.tenant_id,
        principal.workspace_id,
        "My game",
        config={"root": str(tmp_path / "game")},
    )
    return create_target_row(fields, actor="test")


@pytest.fixture
def written_workspace(principal: Principal, folder_target: ExecutionTarget) -> ProjectWorkspace:
    """Return the folder after a scene was created and then changed."""
    workspace = open_workspace(Caller.of(principal), folder_target.id)
    write_text(workspace, SCENE, SCENE_TEXT)
    changed = SCENE_TEXT.replace("第 5 句", "第五句").replace("雪乃: 第 20 句;\n", "")
    write_text(workspace, SCENE, changed + "end;\n", idempotency_key="k-1")
    return workspace
