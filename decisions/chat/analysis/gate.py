"""The L4 gate (S2): risky requests, and those similar to L4 events, need a confirmation."""

from __future__ import annotations

from dataclasses import dataclass

from decisions.chat.risk.classes import RiskClass
from decisions.chat.risk.detection import RequestedRisk, find_risk
from decisions.foundation.presentation.formatting import shorten

THRESHOLD = 0.85
SIMILARITY_RULE = "similar_to_l4_event"
_OPERATES = [
    "deploy",
    "redeploy",
    "release",
    "ship",
    "migrate",
    "restart",
    "reboot",
    "scale",
    "rollback",
    "部署",
    "发布",
    "发版",
    "上线",
    "重启",
    "回滚",
    "迁移",
    "切换",
    "扩容",
    "缩容",
    "下线",
]


@dataclass(frozen=True, slots=True)
class Gate:
    """The result of the gate.

    Attributes:
        rule: the risk class of the action, or SIMILARITY_RULE; empty without a hit.
        top: the highest similarity to a past L4 event.
    """

    rule: str
    reason: str
    top: float

    @property
    def hit(self) -> bool:
        """Whether a confirmation is required."""
        return bool(self.rule)

    def as_dict(self) -> dict[str, object]:
        """Return `trace.l4_gate` (S2)."""
        return {"hit": self.hit, "threshold": THRESHOLD, "reason": self.reason, "top": self.top}


def find_added_risk(
    request: str,
    answers: tuple[str, ...],
    *,
    previous: str,
    waiting: RequestedRisk | None,
    environment: str,
) -> RequestedRisk | None:
    """Return the risk in the answers to a request's questions, or in its environment.

    Slots alone do not make a message risky; but an operation such as a deployment is risky if the
    environment is production.
    """
    for text in answers:
        found = find_risk(text, previous=previous, waiting=waiting)
        if found is not None:
            return found
    lowered = request.lower()
    if environment and any(verb in lowered for verb in _OPERATES):
        found = find_risk(f"{request.rstrip(' .!。！')} {_in_environment(environment)}")
        return found if found and found.rule is RiskClass.PRODUCTION else None
    return None


def _in_environment(environment: str) -> str:
    return f"on {environment}" if environment.isascii() else f"({environment}环境)"


def evaluate_gate(finding: RequestedRisk | None, top_l4: float) -> Gate:
    """Return the gate's result for a message from its risk and its similarity to L4 events."""
    if finding is not None:
        reason = f"{finding.rule}: {shorten(finding.clause, 160)}"
        return Gate(str(finding.rule), reason, top_l4)
    if top_l4 >= THRESHOLD:
        return Gate(SIMILARITY_RULE, f"{SIMILARITY_RULE}: {top_l4:.2f} ≥ {THRESHOLD}", top_l4)
    return Gate("", "no rule hit", top_l4)
