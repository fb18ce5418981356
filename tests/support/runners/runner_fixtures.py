"""Fixtures of the tests that call runners on this machine; their modules use `open_loopback`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from decisions.identity.principals import Principal
from runners.models import ExecutionTarget
from runners.targets.targets import TargetFields, create_target_row

ENDPOINT = "http://127.0.0.1:18081/execute"
MakeRunner = Callable[..., ExecutionTarget]


@pytest.fixture
def open_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow the gateway to call addresses of this machine (an operator's setting)."""
    monkeypatch.setenv("CONTINUITY_EGRESS_ALLOW", "127.0.0.1,::1")


@pytest.fixture
def make_runner(principal: Principal) -> MakeRunner:
    """Create a runner in the caller's workspace: `make_runner(name="a", is_default=True)`."""

    def make(**columns: Any) -> ExecutionTarget:
        fields: dict[str, Any] = {
            "tenant_id": principal.tenant_id,
            "workspace_id": principal.workspace_id,
            "name": "runner",
            "kind": "docker-runner",
            "endpoint": ENDPOINT,
            **columns,
        }
        return create_target_row(TargetFields(**fields), actor="test")

    return make
