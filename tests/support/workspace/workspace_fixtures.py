"""Fixtures for tests of workspace tools: a project folder as the default target, and clients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from decisions.identity.principals import DEFAULT_SCOPES, Principal, create_token
from runners.targets.targets import TargetFields, create_target_row
from tests.support.runners.tool_client import APIS, ToolClient


@pytest.fixture
def project(tmp_path: Path, settings: Any, principal: Principal) -> Path:
    """Create a project folder, the default target of the local workspace; return its path."""
    root = tmp_path / "roots" / "game project"
    (root / "game" / "scene").mkdir(parents=True)
    (root / "game" / "scene" / "start.txt").write_text("changeBg:none;\n", "utf-8")
    settings.WORKSPACE_ROOTS = (tmp_path / "roots",)
    settings.WORKSPACE = None
    settings.CONTINUITY_MCP_TOOLSETS = ["runtime", "continuity", "workspace", "developer"]
    fields = TargetFields(
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        name="game",
        is_default=True,
        config={"root": str(root)},
    )
    create_target_row(fields, actor="test")
    return root


@pytest.fixture
def developer(settings: Any) -> None:
    """Turn on developer mode, as CONTINUITY_DEVELOPER=1 does."""
    settings.WORKSPACE_POLICY = replace(settings.WORKSPACE_POLICY, developer=True)


@pytest.fixture(params=APIS)
def tool_client(request: pytest.FixtureRequest, web: str, project: Path) -> Iterator[ToolClient]:
    """Yield a client of trust level local with every default scope, over REST and over MCP."""
    token = create_token(name="door", trust="local", scopes=DEFAULT_SCOPES)
    client = ToolClient(web, token, over=request.param)
    yield client
    client.close()
