"""Irreversible deletion, in English: the verbs, and the objects that make them risky."""

from __future__ import annotations

import re

from decisions.chat.risk.english.grammar import verbs

DELETE = verbs(
    "delete delte erase wipe purge destroy truncate nuke obliterate shred expunge eradicate"
    " get_rid_of blow_away throw_away throw_out do_away_with dispose_of wipe_out hard-delete"
    " incinerate factory_reset vaporize annihilate",
    nouns="deletion wipe purge erasure destruction truncation wiping wipeout",
)
REMOVE = verbs(
    "remove drop clear clear_out empty clean_out clean_up tear_down terminate kill deprovision"
    " decommission overwrite zap ditch scrap prune trash discard flush scrub dump burn burn_down"
    " eliminate take_off take_out bin format reformat reset reinitialize unlink cancel close"
    " shut_down",
    nouns="removal teardown termination decommissioning cleanup",
)
GONE = re.compile(r"\b(?P<gone>disappear|vanish|gone|go away|cease to exist|trace of|traces of)\b")
_DATA = (
    r"databases?|dbs?|tables?|schemas?|collections?|index(?:es)?|indices|rows?|records?|data"
    r"|datasets?|data ?(?:warehouse|lake)|accounts?|users?|customers?|clients?|profiles?|files?"
    r"|folders?|director(?:y|ies)|drives?|disks?|hdd|ssd|partitions?|volumes?|buckets?|blobs?"
    r"|backups?|snapshots?|archives?|repos?|repositor(?:y|ies)|histor(?:y|ies)|logs?|servers?"
    r"|clusters?|instances?|vms?|machines?|laptops?|phone|hosts?|nodes?|namespaces?|stacks?"
    r"|environments?|projects?|workspaces?|tenants?|mailbox(?:es)?|inbox|e-?mails?|messages?"
    r"|photos?|pictures|documents?|docs|librar(?:y|ies)|orders?|invoices?|transactions?|contacts?"
    r"|calendars?|everything|queues?|topics?|streams?|secrets?|certificates?|domains?|dns|zones?"
    r"|websites?|home dir\w*|registr(?:y|ies)|images?|pvcs?|deployments?|content|contents|stuff"
    r"|entries|tickets?|subscribers?|mailing lists?|members?|employees?|patients?|payloads?"
    r"|evidence|audit trail|traces?|columns?|keyspaces?|storage|warehouses?|vault|wiki|channels?|s3"
    r"|rds|postgres|mysql|mongo(?:db)?|redis|elastic\w*|recordings?|videos?|works?|thesis|artifacts"
    r"|releases?|resources?|infrastructure|infra|crm|trail|copies|copy|usb|sticks?|devices?"
    r"|sessions?|screenshots?"
)
_TEXT = (
    r"words?|sentences?|paragraphs?|commas?|typos?|headings?|titles?|bullets?|(?:points?)|lines?"
    r"|white ?spaces?|spaces?|characters?|emojis?|comments?|imports?|variables?|functions?|methods?"
    r"|parameters?|class(?:es)?|semicolons?|brackets?|footnotes?|slides?|sections?|drafts?|cells?"
    r"|caches?|prints?|statements?|todos?|clipboard|screen|terminal|console|filters?|labels?"
    r"|placeholders?|tooltips?|highlights?|chapters?|formatting|duplicates?|warnings?|borders?"
    r"|shadows?|buttons?|icons?|margins?|padding|quotes|dashes|adjectives?|adverbs?|jargon|hyphens?"
    r"|dependenc(?:y|ies)|whiteboard|desk|kitchen|stains?|counter|alarm|todo items?|node_modules"
    r"|dist|\.pyc|__pycache__|pycache|attributes?|blank|meeting|reminder|hint|tests?|stanza|verse"
    r"|phrases?"
)
_THROWAWAY = re.compile(
    r"\b(?:node_modules|dist|build|cache|cached|temp|temporary|tmp|/tmp\S*|__pycache__|\.pyc"
    r"|scratch|sandbox|fixture|mock|dummy|local branch|local branches|virtualenv|\.?venv|thumbnail"
    r"|local docker|generated|compiled|unused imports?|playground|target/|spreadsheet|draft"
    r"|markdown|readme|essay|poem|story|list above|css|html|this function|the function|the code"
    r"|snippet|sentence)\b"
)
_PRECIOUS = re.compile(
    r"\b(?:prod\w*|live|customers?|backups?|accounts?|everything|all (?:the )?data|databases?"
    r"|users?)\b"
)
_OF_DATA = re.compile(
    r"\b(?:from|in|of) (?:the |our |all )*(?:\w+ )?(?:tables?|databases?|production)\b"
)
_RECOVERABLE = re.compile(
    r"\b(?:soft[- ]delete|to (?:the )?(?:trash|recycle bin|bin)|archive instead)\b"
)
_PHRASE_END = re.compile(
    r"\b(?:from|in|inside|on|at|for|that|which|who|whose|with|to|where|older|by|under|within|before"
    r"|after|if|and|or|as|until|using|via|of)\b|[.!?;]"
)
_KNOWN = re.compile(rf"\b(?:(?P<data>{_DATA})|(?P<text>{_TEXT}))\b")
_PRONOUN = re.compile(
    r"^\s*(?:it|them|that|this|these|those|the (?:lot|whole thing|thing)|all of (?:it|them|that)"
    r"|both|all|the rest)?\b"
)
_IDIOM = re.compile(
    r"^\s*(?:rid of )?(?:(?:my |the |this |a )?(?:headaches?|pain|cold|cough|weight|stress|anxiety"
    r"|hiccups|mice|ants|weeds|mou?ld|smell|nerves|accent|stains?)|me a|by|off|out of|in on"
    r"|(?:some |a little |more )?time|the (?:subject|ball|mic|idea|topic|act|vibe|mood)|a hint"
    r"|a (?:line|note|message|pin|bug|joke)|a (?:fever|habit)|your (?:doubts?|worries)"
    r"|my (?:doubts?|worries|fears|mind|memory)|the air|calories|fat|boundaries|myths?|bridges?"
    r"|the timer|the view|zoom|the form|the search|the filter|the page|the window|the tab|the app"
    r"|the ticket|the issue|the dialog|the modal|(?:my|your) eyes|the deal|the door|the gap"
    r"|the loop"
    rf"|the meeting|the call|the chat)\b(?!\s+(?:{_DATA})\b)"
)


def is_about_data(clause: str, found: re.Match[str], context: str, *, strong: bool) -> bool:
    """Return whether the verb deletes data: by the last noun of its object, by the context for a
    pronoun, by the subject for a passive.
    """
    after = re.sub(r"^\S+", "", clause[found.start() :])
    if _is_harmless(clause, after, found):
        return False
    phrase = _object_of(clause, after, found)
    places: tuple[str, ...] = (phrase, after)
    otherwise = strong
    if "⟦" in phrase:
        places = (phrase, clause)
    elif not phrase.strip() or _PRONOUN.match(phrase):
        places, otherwise = (phrase, after, context), strong and found.lastgroup == "base"
    for place in places:
        known = [one.lastgroup for one in _KNOWN.finditer(place)]
        if known:
            of_data = place is context and "data" in known
            return of_data or known[-1] == "data" or bool(_OF_DATA.search(after))
    return otherwise


def _is_harmless(clause: str, after: str, found: re.Match[str]) -> bool:
    idiom = _IDIOM.search(after) and found.lastgroup != "gone"
    made_again = _THROWAWAY.search(clause) and not _PRECIOUS.search(clause)
    return bool(idiom or made_again or _RECOVERABLE.search(clause))


def _object_of(clause: str, after: str, found: re.Match[str]) -> str:
    if found.lastgroup == "noun":
        return clause
    particle = re.sub(r"^\s*(?:rid of|of|out|up|off|away|down|all of)\b", "", after)
    phrase = _PHRASE_END.split(particle)[0]
    before = clause[: found.start()]
    passive = found.lastgroup in ("past", "gone") or re.search(r"\b(?:be|get)\s*$", before)
    return f"{before} {phrase}" if passive else phrase
