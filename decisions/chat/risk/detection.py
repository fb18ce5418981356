"""The risk class of the action that a message requests, and the clause that requests it."""

from __future__ import annotations

import re
from collections import deque
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
_CLAUSES = 20  # earlier clauses that "do it" may refer to
CONTEXT_CHARS = 2000  # characters of earlier text that a pronoun may refer to


@dataclass(frozen=True, slots=True)
class RequestedRisk:
    """A risk: its class, or the gate's rule of an unconfirmed decision, and its clause."""

    rule: str
    clause: str


def find_risk(
    message: str, *, previous: str = "", waiting: RequestedRisk | None = None
) -> RequestedRisk | None:
    """Return the first risky action that a message requests, or None.

    Args:
        message: the message as received.
        previous: the previous message of the session, which "do it" may refer to.
        waiting: an earlier risk of the session that no person has confirmed; "do it" refers to it
            whatever messages came in between.
    """
    context = previous[-CONTEXT_CHARS:]
    before = parse(f"{waiting.clause}\n{context}" if waiting else context)
    return next(_findings(parse(message), before, waiting), None)


def _findings(
    message: ParsedMessage,
    before: ParsedMessage,
    waiting: RequestedRisk | None,
    *,
    nested: bool = False,
) -> Iterator[RequestedRisk]:
    earlier = _Earlier()
    for clause in (clause for sentence in before.sentences for clause in sentence.clauses):
        earlier.add(clause)
    is_execution = False
    for sentence in message.sentences:
        for number, clause in enumerate(_clauses(sentence)):
            for rule in _risks(sentence, clause, earlier.text, is_first=number == 0):
                yield RequestedRisk(rule, clause)
            if english.refers_back(clause) or chinese.refers_back(clause):
                is_execution = True
                yield from filter(None, [waiting])
                yield from earlier.mentioned()
            is_execution = (
                is_execution
                or english.requests_execution(clause)
                or chinese.requests_execution(clause)
            )
            earlier.add(clause)
    yield from _commands(message.text)
    if (is_execution or message.is_quotation) and not nested:
        for quotation in dict.fromkeys(message.quotations):  # a repeated one says nothing new
            yield from _findings(parse(quotation), before, waiting, nested=True)


def _clauses(sentence: Sentence) -> list[str]:
    return [part for clause in sentence.clauses for part in english_rules.split_joined(clause)]


def _risks(sentence: Sentence, clause: str, context: str, *, is_first: bool) -> Iterator[RiskClass]:
    asks = is_question(clause) or (is_question(sentence.text) and (is_first or sentence.asks))
    if not asks and not (_HAN.search(sentence.text) and _asks_in_chinese(sentence, clause)):
        yield from english_rules.requested_risks(
            clause, context, excused=_excuse_in_chinese(clause)
        )
    if _HAN.search(clause):
        yield from chinese_rules.requested_risks(
            clause, context, about_consequences=chinese.asks_consequences(sentence.text)
        )


def _excuse_in_chinese(clause: str) -> Callable[[int, int], bool]:
    """Return a test whether Chinese words around an English verb make it not a request."""
    if not _HAN.search(clause):
        return lambda start, end: False
    return lambda start, end: not chinese.is_requested(clause, start, end, about_consequences=False)


def _asks_in_chinese(sentence: Sentence, clause: str) -> bool:
    return chinese.asks_consequences(sentence.text) or chinese.is_question(clause)


class _Earlier:
    """The clauses that "do it" may refer to. Each is searched for a risk at most once, and only
    when something refers to it, so a text of many references costs a search per clause.
    """

    def __init__(self) -> None:
        """Begin with no clause."""
        self.text = ""  # what a pronoun in the next clause may refer to
        self._clauses: deque[str] = deque(maxlen=_CLAUSES)
        self._unsearched: deque[tuple[str, str]] = deque(maxlen=_CLAUSES)

    def add(self, clause: str) -> None:
        """Add the clause that follows."""
        self._unsearched.append((clause, self.text))
        self._clauses.append(clause)
        self.text = " ".join(self._clauses)[-CONTEXT_CHARS:]

    def mentioned(self) -> Iterator[RequestedRisk]:
        """Yield the risks that clauses mention, requested or not; each once."""
        while self._unsearched:
            yield from _mentioned(*self._unsearched.popleft())


def _mentioned(clause: str, context: str) -> Iterator[RequestedRisk]:
    rule = english_rules.mentioned_risk(clause, context) or chinese_rules.mentioned_risk(
        clause, context
    )
    if rule is not None:
        yield RequestedRisk(rule, clause)
    yield from (RequestedRisk(found, clause) for found, _ in commands(clause))


_PART = re.compile(r"[.!?。;](?=\s|$)|[!?。;]")


def _commands(text: str) -> Iterator[RequestedRisk]:
    for line in (piece for whole in text.splitlines() for piece in pieces(whole)):
        for rule, start in commands(line):
            part_start = max((one.end() for one in _PART.finditer(line, 0, start)), default=0)
            before, after = line[part_start:start], line[start:]
            if not is_command_requested(before) or is_question(line[part_start:]):
                continue
            if chinese.is_requested(
                before + "⟦⟧" + _han(after), len(before), len(before) + 2, about_consequences=False
            ):
                yield RequestedRisk(rule, line[part_start:].strip())


def _han(text: str) -> str:
    """Return the Chinese text after a command, which may make the sentence a question."""
    return "".join(_HAN.findall(text)) + ("?" if "?" in text else "")
