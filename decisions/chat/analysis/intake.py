"""Intake (Ask-Then-Act): a message's task type, its known slots, and questions for the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from decisions.chat.analysis.language import SCAN_CHARS, Language
from decisions.chat.risk.parsing import normalize

TaskType = Literal["execution", "complex_decision", "concept_exploration"]
MAX_QUESTIONS = 3
REQUIRED: Mapping[TaskType, tuple[str, ...]] = {
    "execution": ("environment", "target", "success_criteria"),
    "complex_decision": (
        "done_definition",
        "money_budget",
        "money_deadline",
        "time_budget",
        "energy_budget",
        "bottom_line",
        "resources",
    ),
    # Optional: an exploration is never delayed by questions.
    "concept_exploration": ("done_definition", "purpose"),
}
QUESTIONS: Mapping[str, Mapping[Language, str]] = {
    "environment": {
        "en": "In which environment should it be done (for example test, staging, production)?",
        "zh": "要在哪个环境执行（例如测试、预发布、生产）？",
    },
    "target": {"en": "What exactly is the target of the action?", "zh": "操作的具体对象是什么？"},
    "success_criteria": {
        "en": "How will you check that it worked?",
        "zh": "怎样才算成功？请给出可检查的标准。",
    },
    "done_definition": {
        "en": "What has to be true for this to count as done?",
        "zh": "做到什么程度算完成？",
    },
    "money_budget": {"en": "How much money may it cost?", "zh": "最多可以花多少钱？"},
    "money_deadline": {
        "en": "By when is the money needed, or how long does it have to last?",
        "zh": "资金需要在什么时候到位，或要撑到什么时候？",
    },
    "time_budget": {"en": "How much time do you have for it?", "zh": "可以投入多少时间？"},
    "energy_budget": {
        "en": "How much of your energy may it take, next to everything else?",
        "zh": "在其他事情之外，你能为它投入多少精力？",
    },
    "bottom_line": {
        "en": "What must not happen under any circumstances?",
        "zh": "底线是什么，哪些情况绝对不能发生？",
    },
    "resources": {
        "en": "Which people, tools or assets can you use for it?",
        "zh": "有哪些人、工具或资源可以用？",
    },
}
_LABELS = {
    "environment": "environment|env|环境",
    "target": "target|object|目标|对象",
    "success_criteria": "success criteri(?:a|on)|success|criteria|成功标准|验收标准|成功",
    "done_definition": "definition of done|done definition|done when|done|完成标准|完成定义",
    "money_budget": "money budget|budget|money|预算|资金|钱",
    "money_deadline": "money deadline|deadline|资金期限|期限|截止",
    "time_budget": "time budget|time|时间预算|时间",
    "energy_budget": "energy budget|energy|精力预算|精力",
    "bottom_line": "bottom line|底线",
    "resources": "resources|资源",
}
_LABELLED = {
    slot: re.compile(
        rf"(?:^|[\n;；,，。])[ ]?(?:\d+[.)、] ?)?(?:{slot}|{names}) ?(?:[:：=]|\bis\b|是"
        rf"|为) ?([^\n;；]+)",
        re.I,
    )
    for slot, names in _LABELS.items()
}
_PLACES = (
    r"(?:production|prod|staging|stage|pre-?prod|development|dev|testing|test|qa|sandbox|local"
    r"(?:host)?|ci|live)"
)
_ENVIRONMENT = re.compile(
    rf"(?:\b(?:on|in|to|at|into|against|from) (?:our |the |my )?|^)({_PLACES})\b"
    r"(?= ?(?:[.,;!]|$|and\b))"
    rf"|\b({_PLACES})(?= (?:environment|env|server|cluster|system|database|db|site|machine|host)\b)"
    r"|(生产环境|正式环境|线上|生产|预发布?环境?|测试环境|开发环境|沙箱|本地|现网)",
    re.I,
)
_NUMBERED = re.compile(r"(?:^|\n|\s)(\d)[.)、:：]\s*([^\n]{1,500}?)(?=\s+\d[.)、:：]\s|\n|\Z)")

_EXPLORES = re.compile(
    r"^\W*(?:(?:hey|hi|hello|ok|so|well|please|quick question|question|in general|generally"
    r"|just curious|curious)\W+)*"
    r"(?:what(?:'s| is| are| does| do| did| happens| would| was)|how (?:do|does|did|can|could"
    r"|to|is|are|long|much|many|would|come)"
    r"|why|when (?:do|does|is|would|should)|where|who|whose|which (?:of the)?\b.*\b(?:is|are"
    r"|does)\b|is (?:it|there|that)|are there|does|do (?:i|you|we)|did|can (?:i|one|a)"
    r"|explain|teach me|tell me (?:about|how|why|what)|describe|define|compare|what about"
    r"|difference|i(?:'d| would) like to"
    r" (?:understand|know|learn)|i want to (?:understand|know|learn)|help me understand"
    r"|should (?:passwords|one)|give me an overview)"
)
_EXPLORES_ZH = re.compile(
    r"什么是|是什么|为什么|为何|如何|怎么(?!还)|怎样|区别|原理|解释|介绍一?下|讲讲|讲解|了解"
    r"|概念|含义|意思|有什么(?:影响|区别|风险|用|不同)|吗[?。]?$|多久|哪些|哪里|谁有"
)
_DECIDES = re.compile(
    r"\b(?:decide|decision|choose|which (?:of|offer|option|one) .*\b(?:should|take|choose"
    r"|better)|should (?:we|i)\b|plan(?:ning)? (?:a|an|the|for|my|our|to)\b|plan a"
    r"|we need a plan|help me plan|budget"
    r"|invest(?:ment)?|strategy|road ?map|project to|trade[- ]?offs?|worth it|business case"
    r"|hire|career|job offers?|pros and cons|prioriti[sz]e|negotiate)\b"
)
_DECIDES_ZH = re.compile(
    r"决定|决策|规划|计划(?!任务)|方案|预算|投资|该不该|要不要|应不应该|还是|换工作|创业|开一家"
    r"|选择|权衡|值不值得|项目(?:怎么|如何|规划)|买房|谈判|战略|跳槽"
)


def task_type_of(message: str, *, risky: bool) -> TaskType:
    """Return a message's task type; a risky request is an execution unless it is a decision."""
    text = normalize(message[:SCAN_CHARS]).strip()
    if _DECIDES.search(text) or _DECIDES_ZH.search(text):
        explains = _EXPLORES.search(text) and not re.search(r"\b(?:should|which)\b", text)
        if not explains and not _is_order(text, risky=risky):
            return "complex_decision"
    if (
        not risky
        and not _ORDER.search(text)
        and (_EXPLORES.search(text) or _EXPLORES_ZH.search(text))
    ):
        return "concept_exploration"
    return "execution"


_ORDER = re.compile(
    r"^(?:please |now |then )?(?:run|deploy|delete|send|pay|install|restart|execute|drop|remove"
    r"|put|transfer|wire|book|buy|move|update|set a|write|draft|review)\b"
    r"|^(?:请|帮我|麻烦)?(?:检查|写|运行|执行|部署|删|发送|统计|查询|起草)"
)


def _is_order(text: str, *, risky: bool) -> bool:
    return bool(_ORDER.search(text)) or (risky and len(text) < 60)


def slots_in(message: str, wanted: Sequence[str]) -> dict[str, str]:
    """Return the slots that a message names by label, and an environment by its name."""
    found, message = {}, message[:SCAN_CHARS]
    for slot in wanted:
        labelled = _LABELLED[slot].search(message) if slot in _LABELLED else None
        if labelled:
            found[slot] = labelled[1].strip(" .。,，")
    if "environment" in wanted and "environment" not in found:
        word = _ENVIRONMENT.search(message)
        if word:
            found["environment"] = next(filter(None, word.groups()))
    return found


def answers_in(message: str, asked: Sequence[str]) -> dict[str, str]:
    """Return slot -> answer from a reply to questions: by label, by number, one per line, or else
    the whole reply as the answer to the first question.
    """
    message = message[:SCAN_CHARS]
    numbered = {int(number): text.strip() for number, text in _NUMBERED.findall(message)}
    by_number = {
        slot: numbered[position] for position, slot in enumerate(asked, 1) if numbered.get(position)
    }
    if by_number:
        return by_number
    labelled = slots_in(message, [slot for slot in asked if slot != "environment"])
    labelled |= slots_in(message, ["environment"]) if "environment" in asked else {}
    for separator in (r"\n+", r"[;；]", r"[,，]"):
        parts = [part.strip() for part in re.split(separator, message) if part.strip()]
        if len(parts) == len(asked) > 1 and len(labelled) < len(asked):
            return dict(zip(asked, parts, strict=True)) | labelled
    return labelled or {asked[0]: message.strip()}


def missing_slots(task_type: TaskType, known: Mapping[str, object]) -> list[str]:
    """Return the required slots without a value, in order."""
    if task_type == "concept_exploration":
        return []
    return [slot for slot in REQUIRED[task_type] if not str(known.get(slot, "")).strip()]


def questions_for(slots: Sequence[str], language: Language) -> list[str]:
    """Return the questions for the first MAX_QUESTIONS slots."""
    return [QUESTIONS[slot][language] for slot in slots[:MAX_QUESTIONS]]


def is_new_request(message: str) -> bool:
    """Return whether a message sent while questions are open is a new request or question, rather
    than an answer.
    """
    text = normalize(message[:SCAN_CHARS]).strip()
    if _NUMBERED.search(text) or any(label.search(text) for label in _LABELLED.values()):
        return False
    if _EXPLORES.search(text) or text.endswith(("?", "？")):
        return True
    return bool(_ORDER.search(text)) and len(text.split()) > 2
