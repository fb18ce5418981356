"""Fixtures for runs of the agent: a scripted model, a project folder and a function that submits a
goal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from decisions.identity.principals import Principal
from runners.invocation.event_loop import get_loop
from runners.llm.base import LlmSettings, Price
from runners.llm.gateway import get_gateway
from runs.submission.submit import submit_run
from tests.support.agent.model_server import ModelServer


@pytest.fixture
def agent_settings(settings: Any, model: ModelServer) -> Iterator[Any]:
    """Configure the scripted model as the agent's model; close its connections at the end."""
    settings.LLM = LlmSettings(
        "openai", "scripted", f"{model.url}/v1", "sk-of-a-test-of-agents", price=Price(1.0, 2.0)
    )
    yield settings
    # A gateway for other settings replaces the one in use and closes its connections.
    get_loop().submit(get_gateway(LlmSettings())).result(30)


@pytest.fixture
def submit_goal(principal: Principal, project: Path, agent_settings: Any) -> Callable[..., str]:
    """Submit a goal and return the run's id: `submit_goal("Do it", maxSteps=3)`."""

    def make(text: str = "Do it.", options: dict[str, Any] | None = None, **inputs: Any) -> str:
        return submit_run(
            principal=principal,
            template_id="agent_task",
            inputs={"goal": text, **inputs},
            options={"mode": "async", **(options or {})},
        ).run_id

    return make
