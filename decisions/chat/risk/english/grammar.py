"""Whether a verb in an English clause is a request: not a question, negation, narration, plan, code
to write, or noun.

A verb counts as a request unless a rule excuses it: missing a risky request is worse than asking
for an unnecessary confirmation.
"""

from __future__ import annotations

import re
from functools import cache

_DOUBLED = {
    "drop",
    "zap",
    "scrap",
    "scrub",
    "ship",
    "trash",
    "format",
    "transfer",
    "cc",
    "bcc",
    "flip",
    "tip",
    "submit",
    "strip",
    "plug",
    "bet",
    "ban",
    "pin",
    "top",
    "rip",
    "remit",
    "wrap",
    "shut",
    "swap",
}
_IRREGULAR = {
    "pay": ("paid",),
    "send": ("sent",),
    "buy": ("bought",),
    "sell": ("sold",),
    "spend": ("spent",),
    "give": ("gave", "given"),
    "make": ("made",),
    "put": (),
    "get": ("got",),
    "throw": ("threw", "thrown"),
    "blow": ("blew", "blown"),
    "tear": ("tore", "torn"),
    "overwrite": ("overwrote", "overwritten"),
    "take": ("took", "taken"),
    "let": (),
    "tell": ("told",),
    "hand": ("handed",),
    "cut": (),
    "set": (),
    "shut": (),
    "lend": ("lent",),
    "bring": ("brought",),
    "write": ("wrote", "written"),
    "do": ("did", "done"),
    "bet": (),
    "rebuild": ("rebuilt",),
    "reset": (),
    "leave": ("left",),
    "go": ("went", "gone"),
    "text": ("texted",),
}


_PARTICLES = {"down", "away", "out", "off", "up", "have", "over"}


def _ing(verb: str) -> str:
    if verb.endswith("e") and not verb.endswith("ee"):
        return verb[:-1] + "ing"
    return (verb + verb[-1] if verb in _DOUBLED and verb[-1] not in "ct" else verb) + "ing"


def _past(verb: str) -> tuple[str, ...]:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("e"):
        return (verb + "d",)
    if verb.endswith("y") and verb[-2] not in "aeou":
        return (verb[:-1] + "ied",)
    return (verb + verb[-1] + "ed",) if verb in _DOUBLED - {"trash", "format"} else (verb + "ed",)


@cache
def verbs(words: str, *, nouns: str) -> re.Pattern[str]:
    """Return a pattern for verbs with the groups base, past, ing, third and noun.

    Args:
        words: base forms separated by spaces, with `_` inside a phrase.
        nouns: the verbs' nouns, separated by spaces.
    """
    base, past, ing, third = [], [], [], []
    for word in words.split():
        verb, _, rest = word.partition("_")
        gap = r"(?:\s+\S+){0,4}?" if rest in _PARTICLES else ""  # "tear it down"
        tail = gap + r"\s+" + rest.replace("_", r"\s+") if rest else ""
        base.append(verb + tail)
        past += [form + tail for form in _past(verb)]
        ing.append(_ing(verb) + tail)
        third.append(verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z")) else "s") + tail)
    groups = {"base": base, "past": past, "ing": ing, "third": third, "noun": nouns.split()}
    parts = [f"(?P<{name}>{'|'.join(forms)})" for name, forms in groups.items() if forms]
    return re.compile(rf"(?<![\w-])(?:{'|'.join(parts)})(?![\w-])")


# Negative phrases that do not negate the verb after them.
UNUSED = re.compile(
    r"\bno longer (?:\w+ )?(?:needed|used|required|wanted|active|relevant)\b|\bno longer\b"
    r"|\bnot (?:needed|used|in use|required|active)\b|\b(?:nobody|no ?one) (?:\w+ )?(?:uses|needs"
    r"|wants|reads|owns)\b|\bnot only\b|\bnot just\b|\bdon'?t (?:just|only|forget to|hesitate to"
    r"|wait(?: to)?|worry|bother asking|ask)\b|\bdo not (?:forget to|hesitate to|ask)\b"
    r"|\bnever ?mind\b|\bwhy not\b|\bno need to (?:ask|wait|confirm|worry)\b|\bno (?:matter"
    r"|problem|worries)\b"
    r"|\bwithout (?:asking|waiting|confirm\w+|a backup|backup|backing|keeping|leaving|further"
    r"|hesita\w+"
    r"|delay|any|review|prompt\w*|testing)\b|\bcan'?t wait to\b|\b(?:do(?:es)?|did)(?: not"
    r"|n'?t) (?:need|want"
    r"|use)(?= (?:it|them|that|this|the|those|these|any)\b)|\bdon'?t care\b"
)
_NEGATED = re.compile(
    r"(?:\b(?:don'?t|do not|does not|doesn'?t|never|must not|mustn'?t|should not|shouldn'?t|won'?t"
    r"|will not|can'?t|cannot|can not|couldn'?t|wouldn'?t|not|without|no need to|needn'?t|avoid"
    r"|refrain from|instead of|rather than|forbid\w*|prevent\w*|prohibit\w*|stop|nobody|no ?one"
    r"|none"
    r"|didn'?t|haven'?t|hasn'?t|isn'?t|aren'?t|refuse[sd]? to|against|anything but|neither|nor"
    r"|hold off(?: on)?|protect\w*|keep \w+ from|hasten not to)\b)(?:\W+[\w']+){0,4}\W*$"
)
_CONDITION = re.compile(
    r"^(?:and |or |but |so |even )*(?:if|when|whenever|unless|in case|suppos\w+|assum\w+"
    r"|imagine|what if"
    r"|before|while|until|as if|as soon as|once|after|in the event)\b"
)
_NOUN_BEFORE = re.compile(
    r"(?:\b(?:the|a|an|this|that|each|every|any|some|my|your|our|their|his|her|its|of|for|on|with"
    r"|about|no|soft|hard|cascade|cascading|bulk|last|next|latest|first|new|failed|recent|pending"
    r"|another|in order|via|per|from)(?:\s+(?:last|latest|next|new|failed|full|recent|old"
    r"|final))?)\s+$"
)
_ARTICLE_THEN_VERB = re.compile(r"\b(?:all|everything|that|this|those|these|every\w+)\s+$")
# Verbs whose object is discussed, written, read or planned, not carried out.
_TALK = re.compile(
    r"(?<!the )(?<!our )(?<!my )(?<!your )(?<!this )(?<!that )(?<!all )(?<!old )(?<!prod"
    r" )(?<!and )\b(?:explain"
    r"|describe"
    r"|tell (?:me|us|them|him|her)(?! to\b)|show|list|count|find out|research|learn|understand"
    r"|teach"
    r"|summari[sz]e|translate|document|write(?! off| out a check)|draft|design|implement|code"
    r"|generate|sketch|propose an?|outline|plan|estimate|simulate|dry[- ]run|preview|discuss"
    r"|compare"
    r"|consider\w*|think(?:ing)? (?:about|of|through)|test(?:s|ing)?|mock|restore|recover|undo"
    r"|block"
    r"|disallow|warn|log|monitor|detect|track|investigate|debug|define|pretend|report"
    r"|check(?! out| in)|verify|review|audit|analy[sz]e|look (?:up|at|for|into)|search|study"
    r"|refactor"
    r"|rename|add|create|build|help me (?:understand|decide|think|figure|plan|write)|remember"
    r"|wonder\w*|curious|know|want to (?:know|understand|learn)|give me|example"
    r"|how (?:to|do|does|can|would|should|much|many)|what (?:happens|would|will|does|is|are|if)|why"
    r"|whether|difference|risks? of|impact of|effect of|consequences? of|proofread|brainstorm"
    r"|mention|remind\w*"
    r"|quote|worried|afraid|fear|suspect|said|says|claims?|reported|recommends?|advises?|warned"
    r"|allows|lets|enables|supports|(?<!how )(?<!what )about(?! to)|choose|decide|between"
    r"|alternatives|pros and cons)\b"
)
_STANDING_ORDER = re.compile(
    r"\b(?:cron ?job|cron|scheduled (?:job|task)|lifecycle (?:rule|policy)|automation|trigger"
    r"|schedule|timer|nightly job)\b"
)
_OTHERS = re.compile(
    r"\b(?:it|this|that|which|who|they|he|she|someone|somebody|anyone|nobody|users?|people"
    r"|attackers?"
    r"|hackers?|command|script|query|button|function|endpoint|job|policy|tool|api|admins?|migration"
    r"|customers?|members?|owners?|employees?|code|app|system|cron|process|bot|intern|colleagues?"
    r"|statement|page|feature|method|flag|option|law|gdpr|regulation|virus|malware|\w+[^s\W]s)\s+"
    r"(?:\w+ly\s+)?(?:(?:will|would|can|could|may|might|does|do|did|to|must|should)\s+)"
    r"(?:\w+ly\s+|also\s+|then\s+|not\s+)?$"
)
_WISHED = re.compile(
    r"\b(?:make|let|want|need|like|must|should|has to|have to|had better|see|sure|ensure|be)\b"
)
_FOR_US = re.compile(r"\b(?:want|need|like|get|have|make|ask|let|tell|require|allow)\b[^,]*$")
_PASSIVE = re.compile(
    r"\b(?:to be|should be|must be|can be|could be|ought to be|needs?(?: to get)?|has to be"
    r"|have to be|be|let'?s get|want(?:s|ed)?|would like|'d like|like|get|have|gets?"
    r"|see)\b[^,.]{0,70}$"
)
_PERFECT = re.compile(
    r"\b(?:have|has|had|having|been|was|were|is|are|'ve|already)\s+(?:\w+ly\s+)?$"
)
_GOING_ON = re.compile(
    r"(?:\b(?:proceed(?:ing)? with|go(?:ing)? ahead (?:with|and)|start|begin|continue|finish"
    r"|mind|how"
    r" about|what about|approve|authori[sz]e|carry on|get on with|suggest|recommend|by|keep|i'?m|i"
    r" am|we'?re|we are|via|is to|initiate|trigger|kick off|perform|execute|carry out|do|make|run"
    r"|schedule|complete|process|issue|confirm|push through|green ?light|sign off on|needs?"
    r"|requires?"
    r"|place|send|release|order|request|want|need|set up)\b)(?:\s+(?:the|a|an|this|that|our|my"
    r"|your|all|with|on|full|immediate"
    r"|immediately|now|just|\w+ly|production|prod|mass|bank|wire|\w+)){0,5}\s*$"
)


# Words required before verb forms that are not requests by themselves.
_GOVERNED_BY = {
    "gone": _WISHED,
    "third": _STANDING_ORDER,
    "past": _PASSIVE,
    "ing": _GOING_ON,
    "noun": _GOING_ON,
}


def is_requested(clause: str, found: re.Match[str]) -> bool:
    """Return whether the verb found in a clause is requested."""
    before, form = clause[: found.start()], str(found.lastgroup)
    plain = UNUSED.sub("", before)
    if _NEGATED.search(plain) or _CONDITION.search(before) or _is_talk(plain):
        return False
    if form == "past" and _PERFECT.search(before):
        return False
    if form in _GOVERNED_BY:
        return bool(_GOVERNED_BY[form].search(before))
    if _NOUN_BEFORE.search(before) and not _ARTICLE_THEN_VERB.search(before):
        return False
    return not (_OTHERS.search(before) and not _FOR_US.search(before))


def _is_talk(before: str) -> bool:
    return bool(_TALK.search(before)) and not _STANDING_ORDER.search(before)


_POLITE = re.compile(
    r"^(?:\W*(?:hey|hi|hello|ok|okay|so|well|and|please|now|great|thanks|alright|sorry)\W+)*"
    r"(?:(?:can|could|would|will|won'?t|can'?t|couldn'?t) (?:you|u|we|someone|somebody|anyone)\b"
    r"|(?:would|do) you mind|mind\b|is it possible (?:for you )?to|any chance (?:you|of)"
    r"|(?:i was |i'm )?wondering"
    r" if you could|how about|what about|why don'?t (?:you|we)|why not|may i ask you to"
    r"|can i (?:get|have|ask) you)"
)
_ASKING = re.compile(
    r"^(?:\W*(?:hey|hi|hello|ok|okay|so|well|and|but|also|quick question|question|btw"
    r"|just curious|hmm+|wait)\W+)*"
    r"(?:how|what|whats|why|when|where|which|who|whose|is|are|was|were|do|does|did|should|shall|may"
    r"|might|has|must|can i|could i|can it|could it|am i|any(?:one|body)? (?:idea|know|tips)"
    r"|difference"
    r"|in general|i wonder|i'm curious|curious|wondering|tell me (?:how|what|why|about)"
    r"|would it|will it"
    r"|would that|will that|can a|can an|can the|could a|could the|does it|have (?:you|we|they"
    r"|i))\b"
)


def is_polite_request(sentence: str) -> bool:
    """Return whether a sentence in question form is a request."""
    return bool(_POLITE.search(sentence))


def is_question(sentence: str) -> bool:
    """Return whether a sentence asks for information."""
    return bool(_ASKING.search(sentence)) and not is_polite_request(sentence)


_DOES = re.compile(
    r"\b(?:run|execute|apply|issue|type|enter|paste|fire|invoke|perform|launch|submit|carry out)\b"
)
_DO_IT = re.compile(
    r"^(?:\W|\b(?:yes|yep|ok|okay|then|just|please|and|now|go ahead and|actually|fine|sure"
    r"|alright|so|anyway|let'?s)\b)*"
    r"(?:do (?:it|that|so|this|them)\b|go ahead\b|proceed\b|go for it|make it (?:so|happen)"
    r"|(?:execute|run|apply|confirm|approve) (?:it|that"
    r"|this|them)\b|confirmed\b|approved\b|ship it\b|carry on\b|get it done|yes please|you may"
    r"|do the same)"
)


def is_command_requested(before: str) -> bool:
    """Return whether a command that follows this text is requested."""
    plain = UNUSED.sub("", before)
    excused = _NEGATED.search(plain) or _CONDITION.search(before) or _is_talk(plain)
    return not excused and not is_question(before)


def requests_execution(clause: str) -> bool:
    """Return whether a clause requests the execution of quoted text."""
    return any(is_command_requested(clause[: one.start()]) for one in _DOES.finditer(clause))


def refers_back(clause: str) -> bool:
    """Return whether a clause requests an action mentioned before ("do it")."""
    return bool(_DO_IT.search(clause))
