"""Irreversible deletion, in English: the verbs, and the objects that make them risky."""

from __future__ import annotations

import re

from decisions.chat.risk.english.grammar import verbs

DELETE = verbs(
    "delete erase wipe purge destroy truncate nuke obliterate shred expunge eradicate get_rid_of"
    " blow_away throw_away throw_out do_away_with dispose_of wipe_out hard-delete incinerate"
    " vaporize"
    " annihilate",
    nouns="deletion wipe purge erasure destruction truncation wiping wipeout",
)
REMOVE = verbs(
    "remove drop clear clear_out empty clean_out clean_up tear_down terminate kill deprovision"
    " decommission overwrite zap ditch scrap prune trash discard flush scrub dump burn burn_down"
    " eliminate format reformat reset reinitialize unlink cancel close shut_down",
    nouns="removal teardown termination decommissioning cleanup",
)
GONE = re.compile(r"\b(?P<gone>disappear|vanish|gone|go away|cease to exist|trace of|traces of)\b")
_DATA = (
    r"databases?|dbs?|tables?|schemas?|collections?|index(?:es)?|indices|rows?|records?|data"
    r"|datasets?"
    r"|data ?(?:warehouse|lake)|accounts?|users?|customers?|clients?|profiles?|files?|folders?"
    r"|director(?:y|ies)|drives?|disks?|hdd|ssd|partitions?|volumes?|buckets?|blobs?|backups?"
    r"|snapshots?|archives?|repos?|repositor(?:y|ies)|histor(?:y|ies)|logs?|servers?"
    r"|clusters?|instances?|vms?|machines?|laptops?|phone|hosts?|nodes?|namespaces?|stacks?"
    r"|environments?|projects?|workspaces?|tenants?|mailbox(?:es)?|inbox|e-?mails?|messages?"
    r"|photos?|pictures|documents?|docs|librar(?:y|ies)|orders?|invoices?|transactions?|contacts?"
    r"|calendars?|everything|queues?|topics?|streams?|secrets?|certificates?|domains?|dns"
    r"|zones?|websites?|home dir\w*|registr(?:y|ies)|images?|pvcs?|deployments?|content"
    r"|contents|stuff|entries"
    r"|tickets?|subscribers?|mailing lists?|members?|employees?|patients?|payloads?|evidence"
    r"|audit trail|traces?"
    r"|columns?|keyspaces?|storage|warehouses?|vault|wiki|channels?|s3|rds|postgres|mysql"
    r"|mongo(?:db)?|redis|elastic\w*"
    r"|recordings?|videos?|works?|thesis|artifacts|releases?|resources?|infrastructure|infra"
    r"|crm|trail|copies|copy"
)
_TEXT = (
    r"words?|sentences?|paragraphs?|commas?|typos?|headings?|titles?|bullets?|(?:points?)|lines?"
    r"|white ?spaces?|spaces?|characters?|emojis?|comments?|imports?|variables?|functions?"
    r"|methods?|parameters?"
    r"|class(?:es)?|semicolons?|brackets?|footnotes?|slides?|sections?|drafts?|cells?|caches?"
    r"|prints?|statements?"
    r"|todos?|clipboard|screen|terminal|console|filters?|labels?|placeholders?|tooltips?"
    r"|highlights?|chapters?"
    r"|formatting|duplicates?|warnings?|borders?|shadows?|buttons?|icons?|margins?|padding"
    r"|quotes|dashes"
    r"|adjectives?|adverbs?|jargon|hyphens?|dependenc(?:y|ies)|whiteboard|desk|kitchen|stains?"
    r"|counter|alarm"
    r"|todo items?|node_modules|dist|\.pyc|__pycache__|pycache|attributes?|blank|meeting"
    r"|reminder|hint|tests?|stanza|verse|phrases?"
)
_THROWAWAY = re.compile(
    r"\b(?:node_modules|dist|build|cache|cached|temp|temporary|tmp|/tmp\S*|__pycache__|\.pyc"
    r"|scratch|sandbox|fixture|mock"
    r"|dummy|local branch|local branches|virtualenv|\.?venv|thumbnail|local docker|generated"
    r"|compiled|unused imports?|playground"
    r"|target/|spreadsheet|draft|markdown|readme|essay|poem|story|list above|css|html"
    r"|this function|the function|the code|snippet|sentence)\b"
)
_PRECIOUS = re.compile(
    r"\b(?:prod\w*|live|customers?|backups?|accounts?|everything|all (?:the )?data|databases?"
    r"|users?)\b"
)
_RECOVERABLE = re.compile(
    r"\b(?:soft[- ]delete|to (?:the )?(?:trash|recycle bin|bin)|archive instead)\b"
)
_PHRASE_END = re.compile(
    r"\b(?:from|in|inside|on|at|for|that|which|who|whose|with|to|where|older|by|under|within"
    r"|before|after|"
    r"if|and|or|as|until|using|via|of)\b|[.!?;]"
)
_KNOWN = re.compile(rf"\b(?:(?P<data>{_DATA})|(?P<text>{_TEXT}))\b")
_PRONOUN = re.compile(
    r"^\s*(?:it|them|that|this|these|those|the (?:lot|whole thing|thing)|all of (?:it|them"
    r"|that)|both|all|the rest)?\b"
)
_IDIOM = re.compile(
    r"^\s*(?:me a|by|off|out of|in on|(?:some |a little |more )?time|the (?:subject|ball"
    r"|mic|idea|topic|act|vibe|mood)|a hint"
    r"|a (?:line|note|message|pin|bug|joke)|a (?:fever|habit)|your (?:doubts?|worries)"
    r"|my (?:doubts?|mind|memory)|the air|calories|fat"
    r"|boundaries|myths?|bridges?|the timer|the view|zoom|the form|the search|the filter"
    r"|the page|the window|the tab|the app|the ticket"
    r"|the issue|the dialog|the modal|(?:my|your) eyes|the deal|the door|the gap|the loop"
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
        known = list(_KNOWN.finditer(place))
        if known:
            return known[-1].lastgroup == "data"
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
