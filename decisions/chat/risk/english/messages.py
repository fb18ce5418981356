"""Mass messages, in English: the verbs, and the recipients that make them risky."""

from __future__ import annotations

import re
from functools import lru_cache

from decisions.chat.risk.english.grammar import verbs

SEND = verbs(
    "send email e-mail mail notify text sms message push blast announce post tell inform alert"
    " invite broadcast dm ping spam"
    " tweet publish distribute deliver forward let remind call contact share circulate put_out"
    " fire_off"
    " shoot schedule slack page cc",
    nouns="announcement blast newsletter broadcast mailing notification campaign",
)
_CROWD = re.compile(
    r"\b(?:all|every|each)(?: (?:of )?(?:the|our|my|single|active|registered|existing|paying"
    r"|past|\d[\d,.k]*|of|one of))* (?:\w+ )?(?:users?|customers?|clients?|subscribers?"
    r"|employees?|staff|members?|contacts?|people|followers"
    r"|parents|students|patients|donors|leads|tenants|partners|investors|players|attendees"
    r"|participants|colleagues|channels|recipients|drivers|residents|voters|applicants|buyers|vendors"
    r"|merchants|accounts)\b"
    r"|\b(?:everyone|everybody|@everyone|@all|@channel|@here|all[- ]hands|company[- ]wide"
    r"|the (?:whole|entire|full) (?:company|team|list|mailing list|customer base|user base"
    r"|staff|school|"
    r"department|org\w*|office|contact list|address book|audience|community|class)"
    r"|mailing lists?|distribution list|newsletter|subscribers|user base|customer base"
    r"|our customers"
    r"|our users|our clients|our followers|our subscribers|the customers|the public|the press"
    r"|\d{2,3}[,.]?\d{3}\s+(?:\w+ )?\w+|\d{3,} (?:\w+ )?(?:users|customers|people|contacts"
    r"|subscribers|leads|members|recipients|clients)"
    r"|thousands of|hundreds of|millions of|(?:company|official|corporate"
    r"|brand)(?:'s)? (?:\w+ )?(?:account|twitter|x account|linkedin|facebook|page|blog"
    r"|instagram|handle)|my entire (?:contact|address)\w*|company slack|general channel"
    r"|#general|all staff)\b"
    r"|@(?:everyone|all|channel|here)\b"
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
    if _NO_SEND.search(after) and not re.search(r"\b(?:everyone|everybody|all)\b", after):
        return False
    crowd = _crowd_in(clause)
    if crowd is not None:
        verb = found[0].split()[0]
        if verb in ("let", "tell", "share", "call", "push", "publish", "post", "page", "text"):
            return (
                crowd.start() >= found.end()
                and (verb != "let" or bool(re.search(r"\bknow\b", after)))
                and not re.match(r"\s*(?:a )?(?:request|method|body)", after)
            )
        return crowd.start() >= found.end() or found.lastgroup != "base"
    pronoun = re.match(
        r"\s*(?:it|them|that|this|the (?:email|message|newsletter|announcement|draft))\b", after
    )
    return bool(
        pronoun
        and found[0].split()[0] in ("send", "post", "publish", "blast", "broadcast")
        and _crowd_in(context)
    )
