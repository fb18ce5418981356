"""Forecast of a request's impact on its user: change of each axis, and the memory layer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from decisions.chat.analysis.intake import TaskType
from decisions.chat.analysis.language import SCAN_CHARS
from decisions.chat.risk.classes import RiskClass
from decisions.models import Axis

_BY_CLASS: Mapping[str, Mapping[str, float]] = {
    RiskClass.DELETION: {Axis.ASSET: -0.9, Axis.RELIABILITY: -0.3},
    RiskClass.MONEY: {Axis.MONEY: -0.9},
    RiskClass.PRODUCTION: {Axis.RELIABILITY: -0.9, Axis.TIME: -0.2},
    RiskClass.CREDENTIALS: {Axis.RELIABILITY: -0.9, Axis.ASSET: -0.4, Axis.IDENTITY: -0.3},
    RiskClass.RIGHTS: {Axis.RELIABILITY: -0.9, Axis.ASSET: -0.3},
    RiskClass.MASS: {Axis.IDENTITY: -0.9, Axis.RELIABILITY: -0.3},
}
_IRREVERSIBLE = {RiskClass.DELETION, RiskClass.MONEY, RiskClass.CREDENTIALS, RiskClass.MASS}
_BY_TASK: Mapping[TaskType, Mapping[str, float]] = {
    "execution": {Axis.TIME: -0.1, Axis.ENERGY: -0.05},
    "complex_decision": {Axis.TIME: -0.3, Axis.ENERGY: -0.25, Axis.MONEY: -0.1},
    "concept_exploration": {Axis.TIME: -0.05},
}
_CONFIDENCE_OF_CLASS, _CONFIDENCE_WITH_SLOTS, _CONFIDENCE_WITHOUT_SLOTS = 0.9, 0.8, 0.6
_LAYERS = ((0.3, "L1"), (0.7, "L2"), (0.9, "L3"))
_AMOUNT = re.compile(r"(\d[\d,]*(?:\.\d+)?)\s*(k|m|万|千|亿|million|thousand)?\b", re.I)
_MONEY = re.compile(
    r"[$€£¥]|\b(?:usd|eur|euros?|dollars?|rmb|pounds?|yuan)\b|[元块]|美元|人民币|预算"
)
_TIMES = {"k": 1e3, "千": 1e3, "thousand": 1e3, "万": 1e4, "m": 1e6, "million": 1e6, "亿": 1e8}
_SYSTEM = re.compile(
    r"\b(?:the (?:system|server|service|platform|tool|database) (?:has )?(?:failed|crashed"
    r"|broke|lost|is down|was down|timed out)"
    r"|outage|because of a bug|system error|hardware failure)\b|系统(?:故障|错误|崩溃|出错)"
    r"|服务(?:宕机|崩溃|不可用)|平台故障|硬件故障",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Impact:
    """A forecast.

    Attributes:
        vector: axis -> change, -1 (uses up all) to 1 (gains much); axes left out do not change.
        confidence: 0..1.
        layer: the memory layer, by the largest |Δ|: below 0.3 L1, below 0.7 L2, below 0.9 L3, else
            L4.
    """

    vector: Mapping[str, float]
    confidence: float
    irreversible: bool
    system_caused: bool

    @property
    def layer(self) -> str:
        """The memory layer of the event."""
        largest = max((abs(delta) for delta in self.vector.values()), default=0.0)
        return next((name for below, name in _LAYERS if largest < below), "L4")


def impact_of(message: str, task_type: TaskType, risk: str | None, *, slots_known: bool) -> Impact:
    """Return the forecast of a message; `risk` is a risk class or another rule of the gate."""
    vector = dict(_BY_TASK[task_type])
    amount = amount_in(message)
    if amount:
        vector[Axis.MONEY] = -min(0.85, math.log10(1 + amount) / 8)
    if risk is not None:
        vector |= _BY_CLASS.get(risk, {})
    confidence = _CONFIDENCE_WITH_SLOTS if slots_known else _CONFIDENCE_WITHOUT_SLOTS
    return Impact(
        vector={str(axis): round(delta, 4) for axis, delta in vector.items()},
        confidence=confidence if risk is None else _CONFIDENCE_OF_CLASS,
        irreversible=risk in _IRREVERSIBLE,
        system_caused=bool(_SYSTEM.search(message[:SCAN_CHARS])),
    )


def amount_in(message: str) -> float:
    """Return the largest amount of money in a message, in any currency; 0 if there is none."""
    message = message[:SCAN_CHARS]
    if not _MONEY.search(message.lower()):
        return 0.0
    amounts = [
        float(number.replace(",", "")) * _TIMES.get(unit.lower(), 1.0)
        for number, unit in _AMOUNT.findall(message)
        if len(number) < 16
    ]
    return max(amounts, default=0.0)
