"""Changes of production, in English: the verbs, and the objects that make them risky."""

from __future__ import annotations

import re

from decisions.chat.risk.english.grammar import verbs

CHANGE = verbs(
    "deploy redeploy release publish push ship roll_out roll_back rollback migrate restart reboot"
    " bounce scale apply update upgrade downgrade patch hotfix hot-patch switch fail_over failover"
    " promote merge change modify alter edit disable enable turn_off turn_on shut_down shutdown"
    " stop kill take get_out bring_back freeze clear run execute revert install launch flip toggle"
    " cut_over redirect route pause reconfigure swap resize throttle drain put reload set lower"
    " raise increase decrease point force overwrite replace import truncate seed rename move start"
    " bring_down take_down power_off power_down reset restore go send_it yolo make cycle unplug"
    " halt",
    nouns="deployment deploy release rollout migration rollback restart cutover failover"
    " hotfix upgrade launch patch",
)
_PRODUCTION = re.compile(
    r"\b(?:prod|production|live (?:site|server|servers|system|database|db|environment|env|traffic"
    r"|cluster|service|customers|users|site's|website|config|api)|on live|to live|go live|goes live"
    r"|real users|all (?:our )?(?:users|customers|regions|tenants|visitors|shoppers|guests|players)"
    r"|everyone|full traffic|public site|the website|main site|npm|pypi|dns|app store|play store"
    r"|the public|primary database|master database|payment (?:service|gateway)|checkout service"
    r"|maintenance mode|real traffic|to all (?:\w+ )?(?:stores|sites|machines|hosts|servers|regions"
    r"|branches|nodes)|the live (?!stream|music|show|concert|event|video|session|chat|blog|demo)\w+"
    r"|the domain (?:at|to)\b|(?:old|previous|last) version of the (?:site|app|website)"
    r"|data ?cent(?:er|re)|load balancer)\b|\b100 ?%|\blive\s*[.!]?$|\b(?:put|push|make|take|bring"
    r"|switch|set|go)\b.{0,40}\blive\b"
)
_NOT_PRODUCTION = re.compile(
    r"\b(?:staging|dev|development|test|testing|qa|sandbox|local|localhost|preview|ci"
    r"|mock) (?:env\w*|server|cluster|database|db|copy|instance|replica)?|\bnon-?prod\w*"
    r"|\bpre-?prod\w*|\b(?:product|production) (?:line|notes|meeting|report|costs?|plan|schedule"
    r"|readiness)|\bproduction-(?:like|ready|grade|quality)|\bread[- ]only\b|\bdry[- ]run\b"
    r"|\bread replica\b|\brelease notes\b"
)
_LOOK = re.compile(
    r"\b(?:run|execute|start|make)\s+(?:\S+\s+){0,4}?(?:report|select|query|health ?checks?"
    r"|smoke tests?|tests?|explain|benchmark|status|diagnostics?|backup|read|search|scan|lint"
    r"|analysis|sure|check|checks|dashboards?)\b"
)
_PUSHED = re.compile(r"\bpush(?:ed|ing)? (?:back|notification|for|through the|myself|the meeting)")
_DOWN = re.compile(
    r"\b(?:shut ?down|take|bring|turn off|power (?:off|down)|stop|kill|halt|restart|reboot|bounce"
    r"|fail ?over|roll|restore|drain|freeze)\b.*\b(?:the (?:whole |entire |main |payment )?(?:site"
    r"|website|cluster|servers?|datacenter|data center|load balancer|database|api gateway|gateway"
    r"|checkout|service)|(?:web|app|mail|database) servers?|node \S+|deployments)\b"
)


_BARE = re.compile(
    r"^(?:deploy|ship|release|publish|rollback|restart|apply|migrate|execute|run"
    r"|push)\b[^.!]{0,6}(?:it|them|that|this|now|all)?\s*(?:now|out|today|right away"
    r"|immediately)?\s*[.!]?$"
)


def is_about_production(clause: str, found: re.Match[str], context: str, *, strong: bool) -> bool:
    """Return whether the verb changes a production system."""
    text = _NOT_PRODUCTION.sub(" ", clause)
    if _LOOK.search(clause) or _PUSHED.search(clause):
        return False
    if _PRODUCTION.search(text) or (_DOWN.search(text) and text == clause):
        return True
    is_bare = _BARE.search(clause[found.start() :])
    return bool(is_bare and _PRODUCTION.search(_NOT_PRODUCTION.sub(" ", context)))
