"""Reality-first check (S2 §6): at most one hint, when a decision seems to rest on the user's
self-image or past rather than on current resources. It blocks nothing and does not judge the user.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from decisions.chat.analysis.language import SCAN_CHARS, Language

_HISTORY = re.compile(
    r"\b(?:i(?:'ve| have)? always|i never|as (?:a|an|the) (?:person|man|woman|expert|founder"
    r"|leader|engineer|manager|professional|\w+er)\b|i(?:'m| am) (?:the|a) (?:kind|type"
    r"|sort) of|people like (?:me|us)"
    r"|that's who i am|i used to|back (?:then|when)|ever since|in my (?:family|experience)"
    r"|everyone knows me|my reputation|i(?:'m| am) (?:someone|somebody) who|i was (?:always"
    r"|once)|we(?:'ve| have) always)\b"
    r"|我(?:一直|向来|从来|从小|总是|以前|过去|当年|曾经)|作为(?:一个|一名)?|像我(?:这样|这种)"
    r"|我(?:就是|这)(?:个|种)?(?:样的|这种|那种)?人|我的(?:性格|身份|名声|面子)|我们家"
    r"|大家都知道我|凭我",
    re.I,
)
_DECISION = re.compile(
    r"\b(?:decide|decided|decision|should|must|have to|going to|will|want to|choose|quit|accept"
    r"|refuse|invest|buy|sell|start|stop|leave|commit)\b"
    r"|决定|应该|必须|要(?!求)|打算|选择|辞职|接受|拒绝|投资|买|卖|开始|放弃|离开",
    re.I,
)
_RESOURCE = re.compile(
    r"\d|[一二三四五六七八九十百千万]+(?:元|块|天|周|个月|年|小时|人)|\b(?:budget|money|cost"
    r"|price|hours?|days?|weeks?|months?|deadline|cash|savings|salary|team|staff|energy"
    r"|resources?|data|evidence|contract|runway|income)\b"
    r"|预算|资金|钱|成本|时间|小时|期限|存款|工资|团队|精力|资源|数据|证据|合同|收入|现金流",
    re.I,
)
_ENOUGH = re.compile(
    r"\b(?:understood|got it|i understand|i know(?: that)?|just do it|no (?:more )?questions"
    r"|stop asking|don't ask|skip (?:the )?questions?|get on with it|hurry up|enough)\b"
    r"|明白了?|知道了|懂了|了解了|别问|不要问|少废话|直接做|快点|够了|别啰嗦",
    re.I,
)
_QUESTION = {
    "en": "Which number or resource (money, time, people) that you have today does this rest on?",
    "zh": "这个决定目前依据的是哪个具体的数字或资源（钱、时间、人手）？",
}


@dataclass(frozen=True, slots=True)
class RealityCheck:
    """The result of the check.

    Attributes:
        mode: off, or low_intervention.
        question: the hint, or None.
    """

    mode: str
    shell_bias_hit: bool
    question: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return `trace.reality_first` (S2)."""
        return {
            "mode": self.mode,
            "shell_bias_hit": self.shell_bias_hit,
            "intervention": "hint" if self.question else "none",
            "question": self.question,
        }


def declines_hints(message: str) -> bool:
    """Return whether the user understood or is impatient, so this session gets no more hints."""
    return bool(_ENOUGH.search(message[:SCAN_CHARS]))


def check_reality(message: str, *, mode: str, hints_off: bool, language: Language) -> RealityCheck:
    """Check a message."""
    if mode == "off":
        return RealityCheck(mode, shell_bias_hit=False, question=None)
    message = message[:SCAN_CHARS]
    hit = bool(
        _HISTORY.search(message) and _DECISION.search(message) and not _RESOURCE.search(message)
    )
    asks = hit and not hints_off and not declines_hints(message)
    return RealityCheck(mode, hit, _QUESTION[language] if asks else None)
