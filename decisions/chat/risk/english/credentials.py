"""Exposing or changing credentials, in English: the verbs, and the objects that make them risky."""

from __future__ import annotations

import re
from functools import lru_cache

from decisions.chat.risk.english.grammar import verbs

EXPOSE = verbs(
    "share send print export paste commit upload post give hand email show dump reveal expose"
    " publish leak copy put rotate revoke reset change regenerate reissue renew invalidate disable"
    " turn_off remove bypass deactivate replace create generate issue mint forward text message"
    " read_out output display store save write log fetch get extract retrieve decrypt hardcode"
    " embed set add tell enter type use switch_off skip slack roll import overwrite provide make"
    " mail expire unlock crack update include transfer",
    nouns="rotation reset revocation",
)
_SECRET = re.compile(
    r"\b(?:passwords?|passwd|passphrases?|passcodes?|credentials?|creds|api[ -]?keys?|(?:aws|gcp"
    r"|azure|stripe|ssh|openai|github|deploy|license|service|server) keys?|secret keys?"
    r"|private keys?|ssh keys?|access keys?|signing keys?|encryption keys?|master keys?|root keys?"
    r"|tokens?|secrets?|certs?|certificates?|\.env(?: files?)?|env file|2fa|mfa"
    r"|two[- ]factor(?: auth\w*)?|multi[- ]factor(?: auth\w*)?|one[- ]time codes?|otp"
    r"|verification codes?|seed phrases?|recovery (?:codes?|phrases?)|keystore|kms keys?"
    r"|service account keys?|(?:alarm|door|gate|entry|access|pin) codes?|combination|login details"
    r"|logins?|id_rsa|\.pem|vault|oauth (?:client )?secrets?|ssn|social security numbers?"
    r"|card numbers?|cvv|keychain)\b"
)
_NO_SECRET = re.compile(
    r"\b(?:(?:max(?:imum)?|input|output|context|llm|prompt|number of|\d+k?) tokens?"
    r"|tokens? (?:count|limit|usage|per|budget)|password (?:policy|field|form|page|strength|manager"
    r"|input|validation|length|column|rules?|hint|requirements?|reset (?:page|flow|form|link"
    r"|email template))|(?:log ?in|login) (?:page|form|button|screen|flow|test|template)"
    r"|design tokens?|syntax tokens?|secret (?:santa|sauce|garden|menu|weapon)"
    r"|env(?:ironment)? example|\.env\.example|birth certificate|gift certificate|certificate of"
    r"|certificates? (?:for the (?:course|winner)|template)|reset (?:password|token) (?:page|flow"
    r"|email))\b"
)


# Many verbs of one clause have the same objects.
@lru_cache(maxsize=8)
def _secret_in(text: str) -> tuple[str, re.Match[str] | None]:
    """Return a text without what is no secret, and the first secret in it."""
    plain = _NO_SECRET.sub(" ", text)
    return plain, _SECRET.search(plain)


def is_about_secrets(clause: str, found: re.Match[str], context: str, *, strong: bool) -> bool:
    """Return whether the verb shows, gives away, changes or stores a secret."""
    text, secret = _secret_in(clause)
    if secret is None:
        after = clause[found.end() :]
        return bool(
            re.match(r"\s*(?:it|them)\b", after)
            and found[0].split()[0]
            in (
                "mail",
                "send",
                "email",
                "text",
                "forward",
                "give",
                "tell",
                "rotate",
                "revoke",
                "share",
                "publish",
                "paste",
                "post",
                "commit",
                "leak",
            )
            and _secret_in(context)[1]
        )
    if secret.start() < found.start() and found.lastgroup == "base":
        return False
    between = text[found.end() : secret.start()]
    return len(between.split()) <= 8 and not re.search(
        r"\b(?:without|sure|no|about|that|which|for the (?:word|page))\b", between
    )
