"""Mass messages, in English: the verbs, and the recipients that make them risky."""

from __future__ import annotations

import re
from functools import lru_cache

from decisions.chat.risk.english.grammar import verbs

SEND = verbs(
    "send email e-mail mail notify text sms message push blast announce post tell inform alert"
    " invite broadcast dm ping spam tweet publish distribute deliver forward let remind call"
    " contact share circulate put_out fire_off shoot schedule slack page cc write_to put get_out"
    " warn",
    nouns="announcement blast newsletter broadcast mailing notification campaign",
)
_CROWD = re.compile(
    r"\b(?:all|every|each)(?: (?:of )?(?:the|our|my|single|active|registered|existing|paying|past"
    r"|\d[\d,.k]*|of|one of))* (?:\w+ )?(?:users?|customers?|clients?|subscribers?|employees?|staff"
    r"|members?|contacts?|people|followers|suppliers|teachers|guests|neighbou?rs|volunteers"
    r"|journalists|reporters|sponsors|readers|parents|students|patients|donors|leads|tenants"
    r"|partners|investors|players|attendees|participants|colleagues|channels|recipients|drivers"
    r"|residents|voters|applicants|buyers|vendors|merchants|accounts)\b|\b(?:everyone|everybody"
    r"|@everyone|@all|@channel|@here|all[- ]hands|company[- ]wide|the (?:whole|entire"
    r"|full) (?:company|team|list|mailing list|customer base|user base|staff|school|department"
    r"|org\w*|office|contact list|address book|audience|community|class)|mailing lists?"
    r"|distribution list|newsletter|subscribers|user base|customer base|the public|the press|(?:our"
    r"|the|my|their|'s) (?:\w+ )?(?:customers|users|clients|followers|subscribers|participants"
    r"|employees|members|parents|suppliers|journalists|readers|residents)|(?:\d{1,3}[,.]\d{3}"
    r"|\d{5,})\s+(?:\w+ )?\w+|\d{2,} (?:\w+ )?(?:guests|users|customers|people|contacts|subscribers"
    r"|leads|members|recipients|clients)|thousands of|hundreds of|millions of|(?:company|official"
    r"|corporate|brand)(?:'s)? (?:\w+ )?(?:account|twitter|x account|linkedin|facebook|page|blog"
    r"|instagram|handle)|our (?:\w+ )?(?:twitter|linkedin|facebook|instagram|blog|page|feed)"
    r"|on (?:facebook|twitter|linkedin|instagram|reddit|social media)|the blog post|on (?:our"
    r"|the) (?:website|site|blog|home ?page)|all \d+ (?:of them|alumni)|(?:every|all) (?:phones?"
    r"|devices?)|my entire (?:contact|address)\w*|company slack|general channel|all staff)\b"
    r"|(?<!\S)#[a-z]\w+|@(?:everyone|all|channel|here)\b"
)
_NO_SEND = re.compile(
    r"^\s*(?:me\b|us\b|him\b|her\b|request\b|to (?:git|origin|main)|a (?:get|post|put) request"
    r"|the (?:data|file|code|branch) )|\bpost requests?\b"
)


# Many verbs of one clause have the same objects.
@lru_cache(maxsize=8)
def _crowd_in(text: str) -> re.Match[str] | None:
    return _CROWD.search(text)


def is_about_crowd(clause: str, found: re.Match[str], context: str, *, strong: bool) -> bool:
    """Return whether the verb sends a message to many people or to the public."""
    after = clause[found.end() :]
    if _NO_SEND.search(after):
        return False
    if found[0] == "tweet":
        return bool(re.match(r"\s+(?:that|this|it|the|our|about)\b", after))
    crowd = _crowd_in(clause)
    if crowd is not None:
        if found[0] in ("put", "let"):
            return bool(re.search(r"\b(?:on|know)\b", after))
        return crowd.start() >= found.end() or found.lastgroup != "base"
    pronoun = re.match(
        r"\s*(?:it|them|that|this|the (?:email|message|newsletter|announcement|draft))\b", after
    )
    return bool(pronoun and _crowd_in(context))
