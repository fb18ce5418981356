"""The rules for English: the verbs of each risk class and the test of their objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from decisions.chat.risk.classes import RiskClass
from decisions.chat.risk.english import credentials, deletion, messages, money, production, rights
from decisions.chat.risk.english.grammar import is_requested

Test = Callable[..., bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """Verbs of one risk class, and the test of their objects."""

    name: RiskClass
    verbs: re.Pattern[str]
    about: Test
    strong: bool = True


DENSE = 12  # verbs of one class in a clause, beyond which excuses count less and less
RULES = (
    Rule(RiskClass.DELETION, deletion.DELETE, deletion.is_about_data),
    Rule(RiskClass.DELETION, deletion.GONE, deletion.is_about_data, strong=False),
    Rule(RiskClass.DELETION, deletion.REMOVE, deletion.is_about_data, strong=False),
    Rule(RiskClass.MONEY, money.PAY, money.is_about_money),
    Rule(RiskClass.MONEY, money.MOVE, money.is_about_money, strong=False),
    Rule(RiskClass.PRODUCTION, production.CHANGE, production.is_about_production),
    Rule(RiskClass.CREDENTIALS, credentials.EXPOSE, credentials.is_about_secrets),
    Rule(RiskClass.RIGHTS, rights.GRANT, rights.is_about_rights),
    Rule(RiskClass.MASS, messages.SEND, messages.is_about_crowd),
)


def requested_risks(
    clause: str, context: str, *, excused: Callable[[int, int], bool]
) -> Iterator[RiskClass]:
    """Yield the classes of the actions that a clause requests.

    Args:
        clause: in lower case.
        context: the text before it.
        excused: whether words of another language around the verb make it not a request.
    """
    for rule in RULES:
        for number, found in enumerate(rule.verbs.finditer(clause)):
            # So many verbs are no ordinary text: neither excuses nor objects are checked.
            if number >= 3 * DENSE:
                yield rule.name
                break
            if rule.about(clause, found, context, strong=rule.strong) and (
                number >= DENSE or (is_requested(clause, found) and not excused(*found.span()))
            ):
                yield rule.name
                break


_JOINED = re.compile(
    r"\s*(?:\band\b|&|\bor\b)\s+(?=(?:also |just |please |then |finally )?([\w-]+))"
)
_BASES = frozenset(
    base.partition("(")[0].partition("\\")[0]
    for rule in RULES
    for bases in re.findall(r"\(\?P<base>(.*?)\)\|\(\?P", rule.verbs.pattern)
    for base in bases.split("|")
)
_WRITES = re.compile(
    r"\b(?:write|draft|implement|design|create|build|code|document|explain|describe|show|generate"
    r"|add|test)\b.*\b(?:to|that|which|for|how)\b"
)

_COMPARES = re.compile(
    r"\b(?:explain|describe|compare|discuss|difference|between|understand|learn|document|both"
    r"|teach)\b"
)


def split_joined(clause: str) -> list[str]:
    """Split a clause at conjunctions into parts with a verb each; clauses that ask to write,
    explain or build something are not split.
    """
    parts, start = [], 0
    for found in _JOINED.finditer(clause):
        left = clause[start : found.start()]
        if found[1] in _BASES and not _WRITES.search(left) and not _COMPARES.search(left):
            parts.append(clause[start : found.start()])
            start = found.end()
    return [part for part in (*parts, clause[start:]) if part.strip()]


def mentioned_risk(clause: str, context: str) -> RiskClass | None:
    """Return the risk class that a clause mentions, requested or not."""
    for rule in RULES:
        for found in rule.verbs.finditer(clause):
            if found.lastgroup not in ("past", "third") and rule.about(
                clause, found, context, strong=rule.strong
            ):
                return rule.name
    return None
