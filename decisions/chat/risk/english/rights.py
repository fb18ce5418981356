"""Changes of access rights, in English: the verbs, and the objects that make them risky."""

from __future__ import annotations

import re

from decisions.chat.risk.english.grammar import verbs

GRANT = verbs(
    "grant give assign make add promote elevate escalate allow let set open expose share"
    " disable turn_off drop remove revoke"
    " strip take_away take change chmod chown put switch_off bypass unlock enable permit"
    " authorize invite transfer hand upgrade ban kick kick_out"
    " block whitelist allowlist publish create bump flip turn lift loosen relax hand_over"
    " deactivate suspend provide",
    nouns="access grant",
)
_RIGHT = re.compile(
    r"\b(?:admin(?:istrator)?s?|super ?users?|superadmin|root|sudo(?:ers?)?|owners?(?:hip)?"
    r"|(?:write|full|read|edit|editor|root|admin|prod\w*|database|db|shell|ssh|vpn|"
    r"unrestricted|elevated|public|remote|repo|anonymous|push|write|merge|billing) (?:access"
    r"|rights?|permissions?|privileges?|role)|access (?:to|rights|from)|permissions?"
    r"|privileges?|iam (?:role|polic\w+)"
    r"|keys? (?:to|on|into) (?:the |all |our |my |every )*(?:\w+ )?(?:servers?|hosts?|machines?"
    r"|authorized_keys|account)"
    r"|maintainers?|collaborators?|777|world[- ](?:readable|writable)|publicly (?:readable"
    r"|accessible|available|visible|writable)|public(?:ly)?(?= ?$| bucket| access"
    r"|\b(?: right)? now| internet|\s*[.!]?$)"
    r"|to the (?:public|world|internet|whole internet)|0\.0\.0\.0(?:/0)?|anyone (?:with|on|can)"
    r"|everything up|everything (?:to|for)"
    r"|whatever (?:they|he|she|anyone) (?:likes?|wants?)"
    r"|firewall|selinux|branch protection|acl|everyone on the internet|access)\b"
)
_NO_RIGHT = re.compile(
    r"\b(?:access (?:logs?|token lifetime|point|pattern|control (?:list )?doc\w*|method)"
    r"|accessib\w+|permission (?:error|denied|slip|model|check)s?"
    r"|admin (?:page|panel|ui|template|dashboard|site|guide|manual|email)s?|root (?:cause"
    r"|directory|element|node|folder|note|div|package)|square root|product owners?"
    r"|home ?owners?|code ?owners? file"
    r"|(?:easy|quick|offline|early|random|direct) access|access (?:it|the (?:page|file|site"
    r"|doc\w*))|administrator'?s guide|github release)\b"
)


def is_about_rights(clause: str, found: re.Match[str], context: str, *, strong: bool) -> bool:
    """Return whether the verb grants or removes a right."""
    text = _NO_RIGHT.sub(" ", clause)
    right = _RIGHT.search(text, min(found.end(), len(text)))
    if right is None:
        return False
    verb, between = found[0].split()[0], text[found.end() : right.start()]
    if verb in ("create", "add", "make", "set", "put") and re.search(
        r"\b(?:page|test|section|button|sure|table|column|field|check|docs?|log|note|a copy"
        r"|list|script)\b",
        between,
    ):
        return False
    if right[0] in ("access", "root", "firewall") and verb in (
        "add",
        "set",
        "put",
        "enable",
        "create",
        "take",
        "change",
    ):
        return verb == "change" or right[0] != "access"
    if right[0] == "public" and verb not in (
        "make",
        "turn",
        "set",
        "flip",
        "switch",
        "change",
        "put",
        "open",
        "expose",
    ):
        return False
    return len(between.split()) <= 9
