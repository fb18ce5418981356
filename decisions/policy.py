"""The one gate for deeds: whether a tool call may be done, asked before every call (continuity.md,
"One gate").

Rules and the high-risk set come with the Continuity API; until then our own tools and templates are
allowed, which is also the default that the rules will fall back to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Verdict:
    """What policy says of a call, and by which rule."""

    decision: Literal["allow", "deny", "confirm"]
    rule: str
    reason: str = ""


def judge(
    *,
    principal_id: str,
    tenant_id: str,
    workspace_id: str,
    tool: str,
    target_id: str | None,
    args: Mapping[str, Any],
) -> Verdict:
    """Return the verdict on one call, before it is made."""
    return Verdict("allow", "default: own tools")
