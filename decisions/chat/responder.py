"""Who words the reply. A backend is named by CONTINUITY_RESPONDER, as Django's own are; it is told
what was decided and returns a text. It decides nothing.

    class Responder:
        def compose(self, decided: Decided) -> str: ...

The built-in one words it here. Any other runs after the decision is committed, for 5 s at most; the
built-in one's text stands where it fails.
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
from decisions.validation.storable import storable_text

TIMEOUT_S = 5.0
MAX_REPLY = 20_000
BUILTIN = "decisions.chat.responder.BuiltInResponder"
_pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="responder")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReplyRequest:
    """What a reply is about.

    Attributes:
        mode: clarify_first, act, clarify or confirm.
        rule: what hit the gate, or nothing.
        delivery: of a confirmation: inline, out_of_band, or empty.
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
    """A backend that words replies."""

    def compose(self, decided: ReplyRequest) -> str:
        """Return the reply to what was decided."""
        ...


_RULES: Mapping[str, Mapping[Language, str]] = {
    "irreversible_deletion": {"en": "it deletes something for good", "zh": "它会永久删除内容"},
    "money_out": {"en": "it spends or moves money", "zh": "它会动用资金"},
    "production": {"en": "it changes production", "zh": "它会改动生产环境"},
    "credentials": {"en": "it touches credentials", "zh": "它涉及凭证或密钥"},
    "rights": {"en": "it changes who may do what", "zh": "它会改变访问权限"},
    "mass_messages": {"en": "it sends a message to many people", "zh": "它会向许多人发送消息"},
    "similar_to_l4_event": {
        "en": "it is almost what had grave consequences before",
        "zh": "它与以往后果严重的操作几乎相同",
    },
}
_TEXTS: Mapping[str, Mapping[Language, str]] = {
    "clarify_first": {
        "en": "Before anything is done, please tell me:",
        "zh": "在执行之前，请先告诉我：",
    },
    "act": {"en": "Nothing speaks against going ahead.", "zh": "可以继续执行。"},
    "explore": {
        "en": "Nothing is changed by this; go ahead.",
        "zh": "这不会改变任何东西，可以继续。",
    },
    "clarify": {
        "en": "Going ahead as it stands costs more than it is expected to bring. Make it smaller,"
        " or say what makes it worth it.",
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
        "en": "Whoever may decide it was asked; it waits until they answer.",
        "zh": "已请有权的人确认，在此之前不会执行。",
    },
    "path": {"en": "It worked before this way: {path}.", "zh": "以前这样做成功过：{path}。"},
    "failures": {
        "en": "Similar attempts failed before ({kinds}).",
        "zh": "以前类似的尝试失败过（{kinds}）。",
    },
}


class BuiltInResponder:
    """The built-in backend: texts put together from the decision, in English or Chinese."""

    def compose(self, decided: ReplyRequest) -> str:
        """Return the reply to what was decided."""
        return "\n".join(part for part in self._parts(decided) if part)

    def _parts(self, decided: ReplyRequest) -> list[str]:
        def say(name: str, **values: str) -> str:
            return _TEXTS[name][decided.language].format(**values)

        explores = decided.mode == "act" and decided.task_type == "concept_exploration"
        parts = [say("explore" if explores else decided.mode, rule=self._rule(decided))]
        if decided.mode == "clarify_first":
            parts += [f"{place}. {text}" for place, text in enumerate(decided.questions, 1)]
        if decided.delivery:
            parts.append(say(decided.delivery))
        if decided.failure_types:
            parts.append(say("failures", kinds=", ".join(decided.failure_types)))
        if decided.best_path:
            parts.append(say("path", path=decided.best_path))
        return [*parts, decided.hint or ""]

    def _rule(self, decided: ReplyRequest) -> str:
        return _RULES[decided.rule][decided.language] if decided.rule in _RULES else decided.rule


def is_builtin_responder() -> bool:
    """Tell whether the built-in backend words the replies."""
    return bool(settings.CONTINUITY_RESPONDER == BUILTIN)


@cache
def _backend(name: str) -> Responder:
    made: Responder = import_string(name)()
    return made


async def compose_reply(decided: ReplyRequest) -> str:
    """Return the configured backend's reply, or the built-in one's where it is late, fails, or says
    nothing. A backend that had not begun when it was late is not asked any more.
    """
    name, loop = settings.CONTINUITY_RESPONDER, asyncio.get_running_loop()
    try:
        work = loop.run_in_executor(_pool, _compose, name, decided)
        told = await asyncio.wait_for(work, TIMEOUT_S)
    except TimeoutError:
        log.warning("the responder took longer than %s s", TIMEOUT_S)
        told = ""
    return told or BuiltInResponder().compose(decided)


def _compose(name: str, decided: ReplyRequest) -> str:
    try:
        told = _backend(name).compose(decided)
    except Exception:  # whatever a backend raises, the decision stands and is worded here
        log.exception("the responder failed")
        return ""
    return storable_text(told)[:MAX_REPLY].strip() if isinstance(told, str) else ""
