"""Parsing of a message into sentences, clauses and quotations."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

_INVISIBLE = re.compile(r"[\u200b-\u200f\u2060\ufeff\u00ad]")
_STRAIGHT = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "«": '"', "»": '"'})
_FENCE = re.compile(r"```[\w+-]*\n?(.*?)(?:```|\Z)", re.S)
_QUOTED = re.compile(
    r"`([^`\n]+)`|\"([^\"]+)\"|「([^」]+)」|『([^』]+)』|《([^》]+)》"
    r"|(?<![\w'])'([^'\n]{2,})'(?![\w'])"
)
_BLOCK_QUOTE = re.compile(r"^[ ]?>.*$", re.M)
_BLANKS, _BREAKS = re.compile(r"[^\S\n]+"), re.compile(r"\n\s*")
MAX_CLAUSE, _OVERLAP = 500, 80  # characters; longer clauses are split into overlapping pieces
# Reported text: what follows the colon is the content of another text, such as a log.
_REPORTED = re.compile(
    r"(?:\b(?:says?|said|reads?|wrote|states?|shows?|error|message|log|output|warning|title"
    r"|subject|sentence|text|phrase|example|quote|headline|stack trace)|写道|说|报错|日志|显示"
    r"|提示|写着|标题|这句话?|原文|内容是|错误信息)\s*(?:is|was|是)?\s*[:：](?:\s*⟦\d+⟧"
    r"|[^\n.!?;。]*)",
    re.I,
)
# Text to work on, such as to translate: everything after the colon.
_WORKED_ON = re.compile(
    r"\b(?:translate|proofread|rephrase|paraphrase|summari[sz]e|explain|correct|classify|review"
    r"|rewrite|analy[sz]e|label)\b[^\n:：.?!]{0,60}[:：].*|(?:翻译|润色|改写|校对|总结|概括|解释"
    r"|分析|分类|纠正)[^\n:：。?？!！]{0,30}[:：].*",
    re.I | re.S,
)
_SENTENCE = re.compile(r"(?<=[!?！？。;；])|(?<=\.)(?=\s|$)|\n+")
_CLAUSE = re.compile(
    r"\s*(?:,(?!\d)|、|:(?=\s|[\u4e00-\u9fff⟦]|$)|\s[-–—]+\s)\s*|\s+(?:but|then|so|because|since"
    r"|although|though|while|however|afterwards|after that)\s+|\s+and\s+(?=(?:then|please|also|now"
    r"|just|finally|afterwards)\b)|(?:但是|(?<!不)但|(?<!永)不过(?!期)|然后|接着|随后"
    r"|(?<!不)再(?![次见也])|之后|并且|而且|(?<!合)并(?![不非没])|顺便|同时|因为|所以|于是)",
    re.I,
)
PLACE = re.compile(r"⟦(\d+)⟧")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence's clauses in order, and whether it ends as a question."""

    text: str
    clauses: tuple[str, ...]
    asks: bool


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """A message in lower case, with its n-th quotation replaced by `⟦n⟧`."""

    text: str
    sentences: tuple[Sentence, ...]
    quotations: tuple[str, ...]
    is_quotation: bool


def normalize(message: str) -> str:
    """Return the message in NFKC and lower case, with straight quotes, no invisible characters."""
    text = unicodedata.normalize("NFKC", message).translate(_STRAIGHT)
    return _BREAKS.sub("\n", _BLANKS.sub(" ", _INVISIBLE.sub("", text))).lower()


def parse(message: str) -> ParsedMessage:
    """Parse a message: quotations are replaced, reported text and text to work on are removed."""
    quotations: list[str] = []

    def replace_quotation(found: re.Match[str]) -> str:
        quotations.append(next(filter(None, found.groups()), ""))
        return f" ⟦{len(quotations) - 1}⟧ "

    text = _BLOCK_QUOTE.sub("", normalize(message))
    text = _QUOTED.sub(replace_quotation, _FENCE.sub(replace_quotation, text))
    is_quotation = not PLACE.sub("", text).strip()
    text = _REPORTED.sub(". ", _WORKED_ON.sub(" ", text))
    sentences = tuple(_sentence(part) for part in _SENTENCE.split(text) if part.strip())
    return ParsedMessage(text, sentences, tuple(quotations), is_quotation)


def _sentence(text: str) -> Sentence:
    stripped = text.strip().rstrip("\"')")
    clauses = [part.strip() for part in _CLAUSE.split(stripped) if part.strip()]
    cut = tuple(piece for clause in clauses for piece in pieces(clause))
    return Sentence(stripped[:MAX_CLAUSE], cut, stripped.endswith("?"))


def pieces(clause: str) -> Iterator[str]:
    """Yield a clause, in overlapping pieces if it is longer than MAX_CLAUSE."""
    step = MAX_CLAUSE - _OVERLAP
    for start in range(0, max(1, len(clause) - _OVERLAP), step):
        yield clause[start : start + MAX_CLAUSE]
