"""The intrinsic class of what a message asks for now, and the words that show it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from decisions.chat.risk.chinese import grammar as chinese
from decisions.chat.risk.chinese import rules as chinese_rules
from decisions.chat.risk.classes import RiskClass
from decisions.chat.risk.commands import commands
from decisions.chat.risk.english import grammar as english
from decisions.chat.risk.english import rules as english_rules
from decisions.chat.risk.english.grammar import is_command_requested, is_question
from decisions.chat.risk.parsing import ParsedMessage, Sentence, parse, pieces

_HAN = re.compile(r"[\u4e00-\u9fff]")
_CLAUSES = 20  # that "do it" may be about
CONTEXT_CHARS = 2000  # characters of what was said before that a pronoun may be about


@dataclass(frozen=True, slots=True)
class Finding:
    """What is risky: its class, or the rule of the gate that waits for a person to confirm it, and
    the clause that asks for it.
    """

    rule: str
    clause: str


def find_risk(
    message: str, *, previous: str = "", waiting: Finding | None = None
) -> Finding | None:
    """Return the first risky thing that a message asks for now, or None.

    Args:
        message: as it came.
        said_before: the message before it in the session, which "do it" is about.
        waiting: what was found in the session and no person has confirmed, which "do it" is about
            whatever was said since.
    """
    context = previous[-CONTEXT_CHARS:]
    before = parse(f"{waiting.clause}\n{context}" if waiting else context)
    return next(_findings(parse(message), before, waiting), None)


def _findings(
    reading: ParsedMessage, before: ParsedMessage, waiting: Finding | None, *, nested: bool = False
) -> Iterator[Finding]:
    talked_about = [clause for sentence in before.sentences for clause in sentence.clauses]
    does = False
    for sentence in reading.sentences:
        for number, clause in enumerate(_clauses(sentence)):
            context = " ".join(talked_about)[-CONTEXT_CHARS:]
            for rule in _risks(sentence, clause, context, is_first=number == 0):
                yield Finding(rule, clause)
            if english.refers_back(clause) or chinese.refers_back(clause):
                does = True
                yield from filter(None, [waiting])
                yield from _talk(talked_about)
            does = does or english.requests_execution(clause) or chinese.requests_execution(clause)
            talked_about = [*talked_about, clause][-_CLAUSES:]
    yield from _commands(reading.text)
    if (does or reading.is_quotation) and not nested:
        for quotation in reading.quotations:
            yield from _findings(parse(quotation), before, waiting, nested=True)


def _clauses(sentence: Sentence) -> list[str]:
    return [part for clause in sentence.clauses for part in english_rules.split_joined(clause)]


def _risks(sentence: Sentence, clause: str, context: str, *, is_first: bool) -> Iterator[RiskClass]:
    asks = is_question(clause) or (is_question(sentence.text) and (is_first or sentence.asks))
    if not asks and not (_HAN.search(sentence.text) and _asks_in_chinese(sentence, clause)):
        yield from english_rules.requested_risks(clause, context, excused=_excuse_in_chinese(clause))
    if _HAN.search(clause):
        yield from chinese_rules.requested_risks(clause, context, asks=chinese.asks_consequences(sentence.text))


def _excuse_in_chinese(clause: str) -> Callable[[int, int], bool]:
    """Return whether Chinese words around an English verb say that it is not asked for."""
    if not _HAN.search(clause):
        return lambda start, end: False
    return lambda start, end: not chinese.is_requested(clause, start, end, asks=False)


def _asks_in_chinese(sentence: Sentence, clause: str) -> bool:
    return chinese.asks_consequences(sentence.text) or chinese.is_question(clause)


def _talk(clauses: list[str]) -> Iterator[Finding]:
    context = ""
    for clause in clauses:
        rule = english_rules.mentioned_risk(clause, context) or chinese_rules.mentioned_risk(
            clause, context
        )
        if rule is not None:
            yield Finding(rule, clause)
        yield from (Finding(found, clause) for found, _ in commands(clause))
        context += " " + clause


_PART = re.compile(r"[.!?。;](?=\s|$)|[!?。;]")


def _commands(text: str) -> Iterator[Finding]:
    for line in (piece for whole in text.splitlines() for piece in pieces(whole)):
        for rule, start in commands(line):
            part_start = max((one.end() for one in _PART.finditer(line, 0, start)), default=0)
            before, after = line[part_start:start], line[start:]
            if not is_command_requested(before) or is_question(line[part_start:]):
                continue
            if chinese.is_requested(
                before + "⟦⟧" + _han(after), len(before), len(before) + 2, asks=False
            ):
                yield Finding(rule, line[part_start:].strip())


def _han(text: str) -> str:
    """Return what is said in Chinese after a command: whether it was a question, say."""
    return "".join(_HAN.findall(text)) + ("?" if "?" in text else "")
