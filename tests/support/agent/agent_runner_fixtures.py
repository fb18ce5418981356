"""Fixtures: runners for runs of the agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from decisions.identity.principals import Principal
from runners.models import ExecutionTarget
from runners.targets.targets import TargetFields, allow_on_target, create_target_row
from tests.support.runners.stub_runner import StubRunner, responding_with, stub_runner

HELLO = {"updates": ["hel", "lo"], "result": {"ok": True, "output": "hello"}}
MakeTarget = Callable[..., ExecutionTarget]


@pytest.fixture
def runner() -> Iterator[StubRunner]:
    """Yield a stub runner whose output is `hello`, sent in two updates."""
    with stub_runner(responding_with(HELLO)) as stub:
        yield stub


@pytest.fixture
def make_target(principal: Principal) -> MakeTarget:
    """Create a runner target that offers these tools: `make_target(url, BASH, allow=["*"])`."""

    def make(endpoint: str, *tools: Any, allow: tuple[str, ...] = (), **options: Any) -> Any:
        config = {"tools": list(tools), **options.pop("config", {})}
        fields = TargetFields(
            principal.tenant_id,
            principal.workspace_id,
            options.pop("name", "builder"),
            "docker-runner",
            endpoint=endpoint,
            config=config,
            **options,
        )
        target = create_target_row(fields, actor="test")
        allow_on_target(target, allow, actor="test", reason="test")
        return target

    return make
