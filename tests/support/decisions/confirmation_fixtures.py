"""Fixtures: runs that need confirmation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import Principal
from runs.models import Run
from runs.submission.submit import submit_run


@pytest.fixture
def confirm_rule(principal: Principal) -> str:
    """Create a policy rule that requires confirmation of the tool `test_risk`."""
    return create_rule(RuleFields("confirm", tool="test_risk", reason="it is risky"), actor="t").key


@pytest.fixture
def submit_calls(principal: Principal, confirm_rule: str, tmp_path: Path) -> Callable[..., Run]:
    """Submit a run with these tool calls and return it: `submit_calls("note:a", "risk:b")`."""

    def make(*do: str, **inputs: Any) -> Run:
        options = {"mode": inputs.pop("mode", "async")}
        calls = {"do": list(do), "file": str(tmp_path / "notes"), **inputs}
        submitted = submit_run(
            principal=principal, template_id="test_calling", inputs=calls, options=options
        )
        return Run.objects.get(id=submitted.run_id)

    return make


@pytest.fixture
def notes(tmp_path: Path) -> Callable[[], str]:
    """Return a function that reads the text that the tools have written so far."""
    file = tmp_path / "notes"
    return lambda: file.read_text() if file.exists() else ""
