"""Changes of access rights, in English: the verbs, and the objects that make them risky."""

from __future__ import annotations

import re

from decisions.chat.risk.english.grammar import verbs

GRANT = verbs(
    "grant give assign make add promote elevate escalate allow let set open expose share disable"
    " turn_off drop remove revoke strip take_away take change chmod chown put switch_off bypass"
    " unlock enable permit authorize invite transfer hand upgrade ban kick kick_out block"
    " whitelist allowlist publish create bump flip turn lift loosen relax hand_over deactivate"
    " suspend provide",
    nouns="access grant",
)
_RIGHT = re.compile(
    r"\b(?:admin(?:istrator)?s?|super ?users?|superadmin|root|sudo(?:ers?)?|owners?(?:hip)?"
    r"|(?:write|full|read|edit|editor|root|admin|prod\w*|database|db|shell|ssh|vpn|unrestricted"
    r"|elevated|public|remote|repo|anonymous|push|write|merge|billing) (?:access|rights?"
    r"|permissions?|privileges?|role)|access (?:to|rights|from)|permissions?|privileges?"
    r"|iam (?:role|polic\w+)|keys? (?:to|on|into) (?:the |all |our |my "
    r"|every )*(?:\w+ )?(?:servers?|hosts?|machines?|authorized_keys|account)|maintainers?"
    r"|collaborators?|777|world[- ](?:readable|writable)|publicly (?:readable|accessible|available"
    r"|visible|writable)|public(?:ly)?(?= ?$| bucket| access|\b(?: right)? now| internet|\s*[.!]?$)"
    r"|to the (?:public|world|internet|whole internet)|0\.0\.0\.0(?:/0)?|anyone (?:with|on|can|who)"
    r"|anonymous \w+|role (?:from|to)|(?:editable|readable|visible|writable|accessible) (?:by|to"
    r"|for)|without (?:a |any )?(?:password|login|authentication|logging in)|\w+ing rights|any ip"
    r"|port \d+|antivirus|encryption|on behalf of|door|approvals?|restrictions?|read and write"
    r"|(?:read|write|edit) on|everything up|everything (?:to|for)|whatever (?:they|he|she"
    r"|anyone) (?:likes?|wants?)|firewall|selinux|branch protection|acl|everyone on the internet"
    r"|access)\b"
)
_BANNED = re.compile(
    r"^(?:ban|kick|kick out|suspend|block|deactivate)\b(?: \w+){0,3}? (?:users?|members?|accounts?"
    r"|him|her|them)\b"
)
_NO_RIGHT = re.compile(
    r"\b(?:access (?:logs?|token lifetime|point|pattern|control (?:list )?doc\w*|method)"
    r"|accessib\w+|permission (?:error|denied|slip|model|check)s?|admin (?:page|panel|ui|template"
    r"|dashboard|site|guide|manual|email)s?|root (?:cause|directory|element|node|folder|note|div"
    r"|package)|square root|product owners?|home ?owners?|code ?owners? file|(?:easy|quick|offline"
    r"|early|random|direct) access|access (?:it|the (?:page|file|site|doc\w*))"
    r"|administrator'?s guide|github release)\b"
)


def is_about_rights(clause: str, found: re.Match[str], context: str, *, strong: bool) -> bool:
    """Return whether the verb grants or removes a right."""
    text = _NO_RIGHT.sub(" ", clause)
    if _BANNED.search(clause[found.start() :]):
        return True
    right = _RIGHT.search(text, min(found.end(), len(text)))
    if right is None:
        return False
    verb, between = found[0].split()[0], text[found.end() : right.start()]
    if verb in ("create", "add", "make", "set", "put") and re.search(
        r"\b(?:page|test|section|button|sure|table|column|field|check|docs?|log|note|a copy|list"
        r"|script)\b",
        between,
    ):
        return False
    return len(between.split()) <= 9
