"""Whether a verb in an English clause is a request: not a question, negation, narration, plan, code
to write, or noun.

A verb counts as a request unless a rule excuses it: missing a risky request is worse than asking
for an unnecessary confirmation.
"""

from __future__ import annotations

import re
from functools import cache

_IRREGULAR = (  # verbs and their past forms, if those differ
    "pay:paid send:sent buy:bought sell:sold spend:spent give:gave|given make:made put: get:got"
    " throw:threw|thrown blow:blew|blown tear:tore|torn overwrite:overwrote|overwritten"
    " take:took|taken let: tell:told cut: set: shut: lend:lent bring:brought write:wrote|written"
    " do:did|done bet: rebuild:rebuilt reset: leave:left go:went|gone bid:"
)
_PARTICLES = {"down", "away", "out", "off", "up", "have", "over", "back"}


def _past_and_ing(verb: str) -> tuple[list[str], str]:
    """Return patterns of a verb: its past forms, and its form in -ing."""
    stem = verb.removesuffix("e")
    again = f"{verb[-1]}?" if verb[-1] not in "aeiouwxy" else ""
    irregular = re.search(rf"(?<!\S){verb}:(\S*)", _IRREGULAR)
    if irregular:
        past = list(filter(None, irregular[1].split("|")))
    elif verb[-1] == "y" and verb[-2] not in "aeou":
        past = [verb[:-1] + "ied"]
    else:
        past = [f"{stem}{again}ed"]
    return past, f"{stem}{again}ing"


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
        past_forms, ing_form = _past_and_ing(verb)
        past += [form + tail for form in past_forms]
        ing.append(ing_form + tail)
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
    r"|\bnever ?mind\b|\bwhy not\b|\bno need to (?:ask|wait|confirm|worry)\b|\bno (?:matter|problem"
    r"|worries)\b|\bwithout (?:asking|waiting|confirm\w+|a backup|backup|backing|keeping|leaving"
    r"|further|hesita\w+|delay|any|review|prompt\w*|testing)\b|\bcan'?t wait to\b|\b(?:do(?:es)?"
    r"|did)(?: not|n'?t) (?:need|want|use)(?= (?:it|them|that|this|the|those|these|any)\b)"
    r"|\bdon'?t care\b"
)
_NEGATED = re.compile(
    r"(?:\b(?:don'?t|do not|does not|doesn'?t|never|must not|mustn'?t|should not|shouldn'?t|won'?t"
    r"|will not|can'?t|cannot|can not|couldn'?t|wouldn'?t|not|without|no need to|needn'?t|avoid"
    r"|refrain from|instead of|rather than|forbid\w*|prevent\w*|prohibit\w*|stop|nobody|no ?one"
    r"|none|didn'?t|haven'?t|hasn'?t|isn'?t|aren'?t|refuse[sd]? to|against|anything but|neither|nor"
    r"|hold off(?: on)?|protect\w*|keep \w+ from|hasten not to)\b)(?:\W+[\w']+){0,4}\W*$"
)
_CONDITION = re.compile(
    r"^(?:and |or |but |so |even )*(?:if|when|whenever|unless|in case|suppos\w+|assum\w+|imagine"
    r"|what if|before|while|until|as if|as soon as|once|after|in the event)\b"
)
_NOUN_BEFORE = re.compile(
    r"(?:\b(?:the|a|an|this|that|each|every|any|some|my|your|our|their|his|her|its|of|for|on|with"
    r"|about|no|soft|hard|cascade|cascading|bulk|last|next|latest|first|new|failed|recent|pending"
    r"|another|in order|via|per|from)(?:\s+(?:last|latest|next|new|failed|full|recent|old"
    r"|final))?)\s+$"
)
# Verbs whose object is discussed, written, read or planned, not carried out.
_DISCUSSED = re.compile(
    r"(?<!the )(?<!our )(?<!my )(?<!your )(?<!this )(?<!that )(?<!all )(?<!old )(?<!prod )(?<!and )"
    r"\b(?:explain|describe|tell (?:me|us|them|him|her)(?! to\b)|show|list|count|find out|research"
    r"|learn|understand|teach|summari[sz]e|translate|document|write(?! off| out a check)|draft"
    r"|design|implement|code|generate|sketch|propose an?|outline|plan|estimate|simulate|dry[- ]run"
    r"|preview|discuss|compare|consider\w*|think(?:ing)? (?:about|of|through)|test(?:s|ing)?|mock"
    r"|restore|recover|undo|block|disallow|warn|log|monitor|detect|track|investigate|debug|define"
    r"|pretend|report|check(?! out| in)|verify|review|audit|analy[sz]e|look (?:up|at|for|into)"
    r"|search|study|refactor|rename|add|create|build|help me (?:understand|decide|think|figure|plan"
    r"|write)|remember|wonder\w*|curious|know|want to (?:know|understand|learn)|give me|example"
    r"|how (?:to|do|does|can|would|should|much|many)|what (?:happens|would|will|does|is|are|if)|why"
    r"|whether|can'?t (?:find|see)|difference|risks? of|impact of|effect of|consequences? of"
    r"|proofread|brainstorm|mention|remind\w*|quote|worried|afraid|fear|suspect|said|says|claims?"
    r"|reported|recommends?|advises?|warned|allows|lets|enables|supports"
    r"|(?<!how )(?<!what )about(?! to)|choose|decide|between|alternatives|pros and cons)\b"
)
_STANDING_ORDER = re.compile(
    r"\b(?:cron ?job|cron|scheduled (?:job|task)|lifecycle (?:rule|policy)|automation|trigger"
    r"|schedule|timer|nightly job)\b"
)
_OTHERS = re.compile(
    r"\b(?:it|this|that|which|who|they|he|she|someone|somebody|anyone|nobody|users?|people"
    r"|attackers?|hackers?|command|script|query|button|function|endpoint|job|policy|tool|api"
    r"|admins?|migration|customers?|members?|owners?|employees?|code|app|system|cron|process|bot"
    r"|intern|colleagues?|statement|page|feature|method|flag|option|law|gdpr|regulation|virus"
    r"|malware|\w+[^s\W]s)\s+(?:\w+ly\s+)?(?:(?:will|would|can|could|may|might|does|do|did|to|must"
    r"|should)\s+)(?:\w+ly\s+|also\s+|then\s+|not\s+)?$"
)
_MEANT = re.compile(r"\b(?:is|was|are|were) (?:meant|supposed|designed|used|able) to\s+$")
_WISHED = re.compile(
    r"\b(?:make|let|want|need|like|must|should|has to|have to|had better|see|sure|ensure|be)\b"
)
_PASSIVE = re.compile(
    r"\b(?:to be|should be|must be|can be|could be|ought to be|needs?(?: to get)?|has to be"
    r"|have to be|be|let'?s get|want(?:s|ed)?|would like|'d like|like|get|have|gets?"
    r"|see)\b[^,.]{0,70}$"
)
_PERFECT = re.compile(
    r"\b(?:have|has|had|having|been|was|were|is|are|'ve|already)\s+(?:\w+ly\s+)?$"
)
_GOING_ON = re.compile(
    r"(?:\b(?:proceed(?:ing)? with|go(?:ing)? ahead (?:with|and)|start|begin|continue|finish|mind"
    r"|how about|what about|approve|authori[sz]e|carry on|get on with|suggest|recommend|by|keep"
    r"|i'?m|i am|we'?re|we are|via|is to|initiate|trigger|kick off|perform|execute|carry out|do"
    r"|make|run|schedule|complete|process|issue|confirm|push through|green ?light|sign off on"
    r"|needs?|requires?|place|send|release|order|request|want|need|set up)\b)(?:\s+(?:the|a|an|this"
    r"|that|our|my|your|all|with|on|full|immediate|immediately|now|just|\w+ly|production|prod|mass"
    r"|bank|wire|\w+)){0,5}\s*$"
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
    if _NEGATED.search(plain) or _CONDITION.search(before) or _is_discussed(plain):
        return False
    if form == "past" and _PERFECT.search(before):
        return False
    if form in _GOVERNED_BY:
        return bool(_GOVERNED_BY[form].search(before))
    if _NOUN_BEFORE.search(before):
        return False
    return not (_OTHERS.search(before) or _MEANT.search(before))


def _is_discussed(before: str) -> bool:
    return bool(_DISCUSSED.search(before)) and not _STANDING_ORDER.search(before)


_POLITE = re.compile(
    r"^\W*(?:(?:hey|hi|hello|ok|okay|so|well|and|please|now|great|thanks|alright"
    r"|sorry)\W+)*(?:(?:can|could|would|will|won'?t|can'?t|couldn'?t) (?:you|u|we|someone|somebody"
    r"|anyone)\b|(?:would|do) you mind|mind\b|is it possible (?:for you )?to|any chance (?:you|of)"
    r"|(?:i was |i'm )?wondering if you could|how about|what about|why don'?t (?:you|we)|why not"
    r"|may i ask you to|can i (?:get|have|ask) you)"
)
_ASKING = re.compile(
    r"^\W*(?:(?:hey|hi|hello|ok|okay|so|well|and|but|also|quick question|question|btw|just curious"
    r"|hmm+|wait)\W+)*(?:how|what|whats|why|when|where|which|who|whose|is|are|was|were|do|does|did"
    r"|should|shall|may|might|has|must|can i|could i|can it|could it|am i|any(?:one|body)? (?:idea"
    r"|know|tips)|difference|in general|i wonder|i'm curious|curious|wondering|tell me (?:how|what"
    r"|why|about)|would it|will it|would that|will that|can a|can an|can the|could a|could the"
    r"|does it|have (?:you|we|they|i))\b"
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
    r"^(?:\W|\b(?:yes|yep|ok|okay|then|just|please|and|now|go ahead and|actually|fine|sure|alright"
    r"|so|anyway|let'?s)\b)*(?:do (?:it|that|so|this|them)\b|go ahead\b|proceed\b|go for it"
    r"|make it (?:so|happen)|(?:execute|run|apply|confirm|approve) (?:it|that|this|them)\b"
    r"|confirmed\b|approved\b|ship it\b|carry on\b|get it done|yes please|you may|do the same)"
)


def is_command_requested(before: str) -> bool:
    """Return whether a command that follows this text is requested."""
    plain = UNUSED.sub("", before)
    excused = _NEGATED.search(plain) or _CONDITION.search(before) or _is_discussed(plain)
    return not excused and not is_question(before)


def requests_execution(clause: str) -> bool:
    """Return whether a clause requests the execution of quoted text."""
    return any(is_command_requested(clause[: one.start()]) for one in _DOES.finditer(clause))


def refers_back(clause: str) -> bool:
    """Return whether a clause requests an action mentioned before ("do it")."""
    return bool(_DO_IT.search(clause))
