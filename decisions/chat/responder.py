"""Responders: backends that write the reply text for a decision, and make no decisions.

CONTINUITY_RESPONDER is the dotted path of the class, as for Django's backends:

    class Responder:
        def compose(self, decided: ReplyRequest) -> str: ...

A custom responder runs after the decision is committed, for at most 5 s; if it fails, the reply is
the text of the built-in responder.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from decisions.chat.analysis.language import Language
from decisions.foundation.validation.storable import storable_text

TIMEOUT_S = 5.0
MAX_REPLY = 20_000
BUILTIN = "decisions.chat.responder.Composed"
_pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="responder")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReplyRequest:
    """The decision that a reply describes.

    Attributes:
        mode: clarify_first, act, clarify or confirm.
        rule: the rule of the L4 gate's hit, or empty.
        delivery: of the confirmation: inline, out_of_band, or empty.
    """

    mode: str
    language: Language
    message: str
    task_type: str
    questions: Sequence[str] = ()
    rule: str = ""
    delivery: str = ""
    best_path: str = ""
    failure_types: Sequence[str] = ()
    hint: str | None = None
    decision: Mapping[str, Any] = field(default_factory=dict)


class Responder(Protocol):
    """A backend that writes reply texts."""

    def compose(self, decided: ReplyRequest) -> str:
        """Return the reply text for a decision."""
        ...


_RULES: Mapping[str, Mapping[Language, str]] = {
    "irreversible_deletion": {"en": "it deletes something for good", "zh": "它会永久删除内容"},
    "money_out": {"en": "it spends or moves money", "zh": "它会动用资金"},
    "production": {"en": "it changes production", "zh": "它会改动生产环境"},
    "credentials": {"en": "it touches credentials", "zh": "它涉及凭证或密钥"},
    "rights": {"en": "it changes access rights", "zh": "它会改变访问权限"},
    "mass_messages": {"en": "it sends a message to many people", "zh": "它会向许多人发送消息"},
    "similar_to_l4_event": {
        "en": "it is very similar to an action that had serious consequences before",
        "zh": "它与以往后果严重的操作几乎相同",
    },
}
_TEXTS: Mapping[str, Mapping[Language, str]] = {
    "clarify_first": {
        "en": "Before anything is done, please tell me:",
        "zh": "在执行之前，请先告诉我：",
    },
    "act": {"en": "It can be carried out.", "zh": "可以继续执行。"},
    "explore": {
        "en": "This changes nothing; it can be carried out.",
        "zh": "这不会改变任何东西，可以继续。",
    },
    "clarify": {
        "en": "As requested, it is expected to cost more than it gains. Reduce the scope, or"
        " explain why it is worth it.",
        "zh": "按目前的情况执行，预期的代价大于收益。请缩小范围，或说明为什么值得。",
    },
    "confirm": {
        "en": "This needs a person's confirmation first: {rule}.",
        "zh": "这需要先由人确认：{rule}。",
    },
    "inline": {
        "en": "Show the risk to the user, and confirm with the token once they agree.",
        "zh": "请向用户说明风险，得到同意后再用令牌确认。",
    },
    "out_of_band": {
        "en": "A person with the right to confirm was notified; it is not carried out before they"
        " confirm.",
        "zh": "已请有权的人确认，在此之前不会执行。",
    },
    "path": {"en": "It worked before this way: {path}.", "zh": "以前这样做成功过：{path}。"},
    "failures": {
        "en": "Similar attempts failed before ({kinds}).",
        "zh": "以前类似的尝试失败过（{kinds}）。",
    },
}


class Composed:
    """The built-in responder: composes fixed texts, in English or Chinese."""

    def compose(self, decided: ReplyRequest) -> str:
        """Return the reply text for a decision."""
        return "\n".join(part for part in self._parts(decided) if part)

    def _parts(self, decided: ReplyRequest) -> list[str]:
        def text(name: str, **values: str) -> str:
            return _TEXTS[name][decided.language].format(**values)

        explores = decided.mode == "act" and decided.task_type == "concept_exploration"
        parts = [text("explore" if explores else decided.mode, rule=self._rule(decided))]
        if decided.mode == "clarify_first":
            parts += [f"{number}. {asked}" for number, asked in enumerate(decided.questions, 1)]
        if decided.delivery:
            parts.append(text(decided.delivery))
        if decided.failure_types:
            parts.append(text("failures", kinds=", ".join(decided.failure_types)))
        if decided.best_path:
            parts.append(text("path", path=decided.best_path))
        return [*parts, decided.hint or ""]

    def _rule(self, decided: ReplyRequest) -> str:
        return _RULES[decided.rule][decided.language] if decided.rule in _RULES else decided.rule


def is_builtin_responder() -> bool:
    """Return whether the built-in responder is configured."""
    return bool(settings.CONTINUITY_RESPONDER == BUILTIN)


@cache
def _backend(name: str) -> Responder:
    responder: Responder = import_string(name)()
    return responder


async def compose_reply(decided: ReplyRequest) -> str:
    """Return the configured responder's text, or the built-in text if it times out, fails or
    returns nothing. At the timeout, a call that has not started yet is cancelled.
    """
    name, loop = settings.CONTINUITY_RESPONDER, asyncio.get_running_loop()
    try:
        work = loop.run_in_executor(_pool, _compose, name, decided)
        text = await asyncio.wait_for(work, TIMEOUT_S)
    except TimeoutError:
        log.warning("the responder took longer than %s s; using the built-in text", TIMEOUT_S)
        text = ""
    return text or Composed().compose(decided)


def _compose(name: str, decided: ReplyRequest) -> str:
    try:
        text = _backend(name).compose(decided)
    except Exception:  # custom code: whatever it raises, the built-in text is used
        log.exception("the responder failed; using the built-in text")
        return ""
    return storable_text(text)[:MAX_REPLY].strip() if isinstance(text, str) else ""
