"""What is risky in English: the verbs of each class and what they have to be about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from decisions.chat.risk.classes import Class
from decisions.chat.risk.english_grammar import is_asked_for, verbs

# --- irreversible deletion -------------------------------------------------------------------------
_DELETE = verbs(
    "delete erase wipe purge destroy truncate nuke obliterate shred expunge eradicate get_rid_of"
    " blow_away throw_away throw_out do_away_with dispose_of wipe_out hard-delete incinerate"
    " vaporize"
    " annihilate",
    nouns="deletion wipe purge erasure destruction truncation wiping wipeout",
)  # fmt: skip
_REMOVE = verbs(
    "remove drop clear clear_out empty clean_out clean_up tear_down terminate kill deprovision"
    " decommission overwrite zap ditch scrap prune trash discard flush scrub dump burn burn_down"
    " eliminate format reformat reset reinitialize unlink cancel close shut_down",
    nouns="removal teardown termination decommissioning cleanup",
)  # fmt: skip
_GONE = re.compile(r"\b(?P<gone>disappear|vanish|gone|go away|cease to exist|trace of|traces of)\b")
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
    r"^\s*(?:me a|by\b|off\b|out of|in on|(?:some |a little |more )?time|the (?:subject|ball"
    r"|mic|idea|topic|act|vibe|mood)|a hint"
    r"|a (?:line|note|message|pin|bug|joke)|a (?:fever|habit)|your (?:doubts?|worries)"
    r"|my (?:doubts?|mind|memory)|the air|calories|fat"
    r"|boundaries|myths?|bridges?|the timer|the view|zoom|the form|the search|the filter"
    r"|the page|the window|the tab|the app|the ticket"
    r"|the issue|the dialog|the modal|(?:my|your) eyes|the deal|the door|the gap|the loop"
    r"|the meeting|the call|the chat)"
)


def _about_data(clause: str, found: re.Match[str], context: str, *, strong: bool) -> bool:
    """Tell whether a verb of deletion is about something that would be gone: its object's last
    noun, what its pronoun stands for, or for a passive what stands before it.
    """
    before = clause[: found.start()]
    after = re.sub(r"^\S+", "", clause[found.start() :])
    if (_IDIOM.search(after) and found.lastgroup != "gone") or _RECOVERABLE.search(clause):
        return False
    phrase = _PHRASE_END.split(
        re.sub(r"^\s*(?:rid of|of|out|up|off|away|down|all of)\b", "", after)
    )[0]
    if found.lastgroup in ("past", "gone") or re.search(r"\b(?:be|get)\s*$", before):
        phrase = f"{before} {phrase}"
    if found.lastgroup == "noun":
        phrase = clause
    if _THROWAWAY.search(clause) and not _PRECIOUS.search(clause):
        return False
    known = list(_KNOWN.finditer(phrase))
    if known:
        return known[-1].lastgroup == "data"
    if "⟦" in phrase:
        known = list(_KNOWN.finditer(clause))
        return known[-1].lastgroup == "data" if known else strong
    if not phrase.strip() or _PRONOUN.match(phrase):
        known = list(_KNOWN.finditer(after)) or list(_KNOWN.finditer(context))
        if known:
            return known[-1].lastgroup == "data"
        return strong and found.lastgroup == "base"
    later = list(_KNOWN.finditer(after))
    return later[-1].lastgroup == "data" if later else strong


# --- money out -------------------------------------------------------------------------------------
_PAY = verbs(
    "pay pay_off wire refund remit reimburse purchase buy donate disburse venmo paypal zelle"
    " overpay prepay"
    " repay cash_out check_out",
    nouns="payment refund payout purchase disbursement reimbursement donation wire remittance",
)  # fmt: skip
_MOVE = verbs(
    "transfer send move deposit withdraw invest charge settle spend tip lend loan top_up"
    " advance sell"
    " subscribe renew book order put give release approve authorize clear cover bet stake bid"
    " trade swap"
    " let_have credit cut upgrade hand place wager sign_up forward contribute convert liquidate"
    " execute process set_up make issue",
    nouns="transfer withdrawal deposit payment payout refund trade order",
)  # fmt: skip
_AMOUNT = (
    r"(?:[$€£¥]\s?\d|\b\d[\d,.]*\s?(?:k|m|mm|million|thousand|grand)?\s?(?:dollars?|bucks|usd"
    r"|eur|euros?|gbp|pounds"
    r"|rmb|cny|yuan|yen|btc|eth|usdt|usdc|sol|bitcoins?|francs|chf|inr|rupees|quid)\b"
    r"|\b(?:hundred|thousand|million|grand|five hundred)"
    r"(?: \w+)? (?:dollars?|bucks|euros?|pounds|usd)\b)"
)
_MONEY = (
    r"money|funds?|cash|payments?|invoices?|bills?|salar(?:y|ies)|payroll|wages?|rent|deposit"
    r"|fees?|balance"
    r"|fine|taxes|tax|subscriptions?|shares|stocks?|crypto\w*|bitcoins?|ethereum|tokens sale"
    r"|tickets?|flights?|hotels?|gift cards?"
    r"|licen[cs]es?|credit cards?|debit card|wallet|savings|bank|escrow|bonus(?:es)?|vendors?"
    r"|suppliers?"
    r"|contractors?|refunds?|donations?|purchases?|order|expenses?|loan|mortgage|debt|budget"
    r"|paid plan|premium"
    r"|enterprise plan|pro plan|installment|premiums?|account balance|portfolio|bonds?|options"
    r"|position|holdings|treasury|wire transfers?|wires?"
)
_IS_MONEY = re.compile(rf"{_AMOUNT}|\b(?:{_MONEY})\b")
_IS_AMOUNT = re.compile(
    rf"{_AMOUNT}|\b(?:money|funds|cash|payments?|payouts?|invoices?|bills?|payroll|salar(?:y"
    rf"|ies)|wages|refunds?|bitcoins?|crypto\w*"
    r"|shares of|stocks?|wire transfers?|bank transfers?|deposit|subscriptions?|paid plan"
    r"|premium plan|enterprise plan|pro plan"
    r"|gift cards?|purchase order|an order|the order for|tickets?|flights?|hotel\w*|escrow"
    r"|bonus(?:es)?|savings|donation|debt|rent"
    r"|mortgage|entire portfolio|holdings|position|credit card|expenses?)\b|\border(?:s|ed"
    r"|ing)? \d+|\bstock\b"
    r"|\b\d[\d,.]*k?\s+(?:into|in)\b.*\b(?:funds?|account|stocks?|portfolio|etf|bonds?|crypto)\b"
)
_NO_PAY = re.compile(
    r"^\s*(?:(?:more |close |special |careful |particular )?attention|heed|respects?|homage"
    r"|tribute|a visit|off(?! (?:the|my|our)\b)"
    r"|lip service|dividends|in\b|time|into|a compliment|compliments|up(?! for)|dearly)"
)
_NO_MOVE = re.compile(
    r"\b(?:send|forward|share|give|hand)\b.*\b(?:copy|pdf|summary|report|link|reminder"
    r"|email about|details?|number of|overview"
    r"|status|receipt|screenshot|list|draft|template|breakdown|comparison)\b|\bcover letter\b"
    r"|\bmake sure\b|\bput (?:it |this |that )?together\b"
    r"|\b(?:move|forward|transfer|send) (?:the|this|that|these|those|my|our"
    r"|all) (?:\w+ )?(?:invoices?|bills?|tickets?|expenses?|receipts?) (?:to|into|over to)"
)


def _about_money(clause: str, found: re.Match[str], context: str, *, strong: bool) -> bool:
    after = clause[found.end() :]
    if _NO_PAY.search(after) or (not strong and _NO_MOVE.search(clause)):
        return False
    if strong:
        return (
            bool(_IS_MONEY.search(clause))
            or bool(re.match(r"\s*\S", after))
            or bool(_IS_AMOUNT.search(context))
        )
    if _IS_AMOUNT.search(clause):
        return True
    return bool(re.match(r"\s*(?:it|them|that|this)\b", after) and re.search(_AMOUNT, context))


# --- production ------------------------------------------------------------------------------------
_CHANGE = verbs(
    "deploy redeploy release publish push ship roll_out roll_back rollback migrate restart"
    " reboot bounce scale"
    " apply update upgrade downgrade patch hotfix hot-patch switch fail_over failover promote"
    " merge change"
    " modify alter edit disable enable turn_off turn_on shut_down shutdown stop kill take run"
    " execute"
    " install launch flip toggle cut_over redirect route pause reconfigure swap resize throttle"
    " drain put"
    " reload set lower raise increase decrease point force overwrite replace import truncate"
    " seed rename move start"
    " bring_down take_down power_off power_down reset restore go send_it yolo make cycle unplug"
    " halt",
    nouns="deployment deploy release rollout migration rollback restart cutover failover hotfix upgrade launch patch",
)  # fmt: skip
_PRODUCTION = re.compile(
    r"\b(?:prod|production|live (?:site|server|servers|system|database|db|environment|env"
    r"|traffic|cluster|service|customers|users|site's|website|config|api)"
    r"|on live|to live|go live|goes live|real users|all (?:our )?(?:users|customers|regions"
    r"|tenants)|everyone|full traffic|public site|the website|main site"
    r"|npm|pypi|app store|play store|the public|primary database|master database"
    r"|payment (?:service|gateway)|checkout service)\b|\b100 ?%|\blive\s*[.!]?$"
)
_QUIET = re.compile(
    r"\b(?:run|execute|make|start|set|put|go|import|send_it|move|take|raise|apply|stop|point"
    r"|edit|change|update|rename)\b"
)
_NOT_PRODUCTION = re.compile(
    r"\b(?:staging|dev|development|test|testing|qa|sandbox|local|localhost|preview|ci"
    r"|mock) (?:env\w*|server|cluster|database|db|copy|instance|replica)?"
    r"|\bnon-?prod\w*|\bpre-?prod\w*|\b(?:product|production) (?:line|notes|meeting|report"
    r"|costs?|plan|schedule|readiness)"
    r"|\bproduction-(?:like|ready|grade|quality)|\bread[- ]only\b|\bdry[- ]run\b"
    r"|\bread replica\b|\brelease notes\b"
)
_LOOK = re.compile(
    r"\b(?:run|execute|start|make)\s+(?:\S+\s+){0,4}?(?:report|select|query|health ?checks?"
    r"|smoke tests?|tests?|explain|benchmark|status"
    r"|diagnostics?|backup|read|search|scan|lint|analysis|sure|check|checks|dashboards?)\b"
)
_PUSHED = re.compile(r"\bpush(?:ed|ing)? (?:back|notification|for|through the|myself|the meeting)")
_DOWN = re.compile(
    r"\b(?:shut ?down|take|bring|turn off|power (?:off|down)|stop|kill|halt|restart|reboot"
    r"|bounce|fail ?over)\b.*\b(?:the (?:whole |entire |main |payment )?"
    r"(?:site|website|cluster|servers?|datacenter|data center|load balancer|database"
    r"|api gateway|gateway|checkout|service))\b"
)


def _about_production(clause: str, found: re.Match[str], context: str, *, strong: bool) -> bool:
    text = _NOT_PRODUCTION.sub(" ", clause)
    if _LOOK.search(clause) or _PUSHED.search(clause):
        return False
    if _PRODUCTION.search(text):
        return _CHANGES.search(text) is not None
    if _DOWN.search(text) and text == clause:
        return True
    after = clause[found.end() :]
    pronoun = re.match(
        r"\s*(?:it|them|that|this|now|all)?\b\s*(?:now|out|today|right away|immediately)?\s*[.!]?$",
        after,
    )
    strong_verb = found[0].split()[0] in (
        "deploy",
        "ship",
        "release",
        "publish",
        "rollback",
        "restart",
        "apply",
        "migrate",
        "execute",
        "run",
        "push",
    )
    return bool(pronoun and strong_verb and _PRODUCTION.search(_NOT_PRODUCTION.sub(" ", context)))


_CHANGES = re.compile(r".")

# --- credentials -----------------------------------------------------------------------------------
_EXPOSE = verbs(
    "share send print export paste commit upload post give hand email show dump reveal expose"
    " publish leak copy put"
    " rotate revoke reset change regenerate reissue renew invalidate disable turn_off remove"
    " bypass deactivate replace create generate issue mint"
    " forward text message read_out output display store save write log fetch get extract"
    " retrieve decrypt hardcode embed set add tell enter type use"
    " switch_off skip slack roll import overwrite provide unlock crack update include transfer",
    nouns="rotation reset revocation",
)  # fmt: skip
_SECRET = re.compile(
    r"\b(?:passwords?|passwd|passphrases?|passcodes?|credentials?|creds|api[ -]?keys?"
    r"|secret keys?|private keys?|ssh keys?|access keys?"
    r"|signing keys?|encryption keys?|master keys?|root keys?|tokens?|secrets?|certs?"
    r"|certificates?|\.env(?: files?)?|env file|2fa|mfa|two[- ]factor(?: auth\w*)?"
    r"|multi[- ]factor(?: auth\w*)?|one[- ]time codes?|otp|verification codes?|seed phrases?"
    r"|recovery (?:codes?|phrases?)|keystore|kms keys?|service account keys?"
    r"|pin codes?|login details|logins?|id_rsa|\.pem|vault|oauth (?:client )?secrets?|ssn"
    r"|social security numbers?|card numbers?|cvv|keychain)\b"
)
_NO_SECRET = re.compile(
    r"\b(?:(?:max(?:imum)?|input|output|context|llm|prompt|number of|\d+k?) tokens?"
    r"|tokens? (?:count|limit|usage|per|budget)"
    r"|password (?:policy|field|form|page|strength|manager|input|validation|length|column"
    r"|rules?|hint|requirements?|reset (?:page|flow|form|link|email template))"
    r"|(?:log ?in|login) (?:page|form|button|screen|flow|test|template)|design tokens?"
    r"|syntax tokens?|secret (?:santa|sauce|garden|menu|weapon)"
    r"|env(?:ironment)? example|\.env\.example|birth certificate|gift certificate"
    r"|certificate of|certificates? (?:for the (?:course|winner)|template)"
    r"|reset (?:password|token) (?:page|flow|email))\b"
)
_SEEING = re.compile(
    r"^(?:create|generate|set|add|get|fetch|use|enter|type|store|save|write|read_out|log|update"
    r"|retrieve|include|import|show|remove|put|change|copy|replace|"
    r"tell|transfer|output|display|skip)"
)


def _about_secrets(clause: str, found: re.Match[str], context: str, *, strong: bool) -> bool:
    text = _NO_SECRET.sub(" ", clause)
    secret = _SECRET.search(text)
    if secret is None:
        after = clause[found.end() :]
        return bool(
            re.match(r"\s*(?:it|them)\b", after)
            and found[0].split()[0]
            in ("rotate", "revoke", "share", "publish", "paste", "post", "commit", "leak")
            and _SECRET.search(_NO_SECRET.sub(" ", context))
        )
    if secret.start() < found.start() and found.lastgroup == "base":
        return False
    between = text[found.end() : secret.start()]
    return len(between.split()) <= 8 and not re.search(
        r"\b(?:without|no|about|that|which|for the (?:word|page))\b", between
    )


# --- rights ----------------------------------------------------------------------------------------
_GRANT = verbs(
    "grant give assign make add promote elevate escalate allow let set open expose share"
    " disable turn_off drop remove revoke"
    " strip take_away take change chmod chown put switch_off bypass unlock enable permit"
    " authorize invite transfer hand upgrade ban kick kick_out"
    " block whitelist allowlist publish create bump flip turn lift loosen relax hand_over"
    " deactivate suspend provide",
    nouns="access grant",
)  # fmt: skip
_RIGHT = re.compile(
    r"\b(?:admin(?:istrator)?s?|super ?users?|superadmin|root|sudo(?:ers?)?|owners?(?:hip)?"
    r"|(?:write|full|read|edit|editor|root|admin|prod\w*|database|db|shell|ssh|vpn|"
    r"unrestricted|elevated|public|remote|repo|anonymous|push|write|merge|billing) (?:access"
    r"|rights?|permissions?|privileges?|role)|access (?:to|rights|from)|permissions?"
    r"|privileges?|iam (?:role|polic\w+)"
    r"|maintainers?|collaborators?|777|world[- ](?:readable|writable)|publicly (?:readable"
    r"|accessible|available|visible|writable)|public(?:ly)?(?= ?$| bucket| access"
    r"|\b(?: right)? now| internet|\s*[.!]?$)"
    r"|to the (?:public|world|internet|whole internet)|0\.0\.0\.0(?:/0)?|anyone (?:with|on|can)"
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
_OPENS = re.compile(
    r"^(?:grant|give|assign|make|add|promote|elevate|escalate|open|expose|disable|turn|drop"
    r"|remove|revoke|strip|take|chmod|chown|switch|bypass|allow|let|set|put|change|unlock"
    r"|enable"
    r"|permit|authorize|invite|transfer|hand|share|upgrade|ban|kick|block|whitelist|allowlist"
    r"|publish|bump|flip|lift|loosen|relax|deactivate|suspend|provide|access)"
)


def _about_rights(clause: str, found: re.Match[str], context: str, *, strong: bool) -> bool:
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


# --- mass messages ---------------------------------------------------------------------------------
_SEND = verbs(
    "send email e-mail mail notify text sms message push blast announce post tell inform alert"
    " invite broadcast dm ping spam"
    " tweet publish distribute deliver forward let remind call contact share circulate fire_off"
    " shoot schedule slack page cc",
    nouns="announcement blast newsletter broadcast mailing notification campaign",
)  # fmt: skip
_CROWD = re.compile(
    r"\b(?:all|every|each)(?: (?:of )?(?:the|our|my|single|active|registered|existing|paying"
    r"|past|\d[\d,.k]*|of|one of))* (?:\w+ )?(?:users?|customers?|clients?|subscribers?"
    r"|employees?|staff|members?|contacts?|people|followers"
    r"|parents|students|patients|donors|leads|tenants|partners|investors|players|attendees"
    r"|participants|colleagues|recipients|drivers|residents|voters|applicants|buyers|vendors"
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


def _about_crowd(clause: str, found: re.Match[str], context: str, *, strong: bool) -> bool:
    after = clause[found.end() :]
    if _NO_SEND.search(after) and not re.search(r"\b(?:everyone|everybody|all)\b", after):
        return False
    crowd = _CROWD.search(clause)
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
        and _CROWD.search(context)
    )


Test = Callable[..., bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """Verbs of one class, and the test of what they are about."""

    name: Class
    verbs: re.Pattern[str]
    about: Test
    strong: bool = True


DENSE = 12  # verbs of one class in one clause
RULES = (
    Rule(Class.DELETION, _DELETE, _about_data),
    Rule(Class.DELETION, _GONE, _about_data, strong=False),
    Rule(Class.DELETION, _REMOVE, _about_data, strong=False),
    Rule(Class.MONEY, _PAY, _about_money),
    Rule(Class.MONEY, _MOVE, _about_money, strong=False),
    Rule(Class.PRODUCTION, _CHANGE, _about_production),
    Rule(Class.CREDENTIALS, _EXPOSE, _about_secrets),
    Rule(Class.RIGHTS, _GRANT, _about_rights),
    Rule(Class.MASS, _SEND, _about_crowd),
)


def risks(clause: str, context: str) -> Iterator[Class]:
    """Yield the classes of what a clause asks for; `context` is what was said before it."""
    for rule in RULES:
        for number, found in enumerate(rule.verbs.finditer(clause)):
            # Nobody talks like that: no excuse is looked for any more.
            if number >= 3 * DENSE:
                yield rule.name
                break
            asked = number >= DENSE or is_asked_for(clause, found)
            if asked and rule.about(clause, found, context, strong=rule.strong):
                yield rule.name
                break


_JOINED = re.compile(
    r"\s*(?:\band\b|&|\bor\b)\s+(?=(?:also |just |please |then |finally )?([\w-]+))"
)
_BASES = frozenset(
    base.partition("(")[0].partition("\\")[0]
    for rule in RULES
    for bases in re.findall(r"\(\?P<base>(.*?)\)\|\(\?P", rule.verbs.pattern)
    for base in bases.split("|")
)
_WRITES = re.compile(
    r"\b(?:write|draft|implement|design|create|build|code|document|explain|describe|show"
    r"|generate|add|test)\b.*\b(?:to|that|which|for|how)\b"
)

_COMPARES = re.compile(
    r"\b(?:explain|describe|compare|discuss|difference|between|understand|learn|document|both"
    r"|teach)\b"
)


def split_joined(clause: str) -> list[str]:
    """Return a clause as parts that each have a verb of their own; what is written, explained or
    built stays whole.
    """
    parts, start = [], 0
    for found in _JOINED.finditer(clause):
        left = clause[start : found.start()]
        if found[1] in _BASES and not _WRITES.search(left) and not _COMPARES.search(left):
            parts.append(clause[start : found.start()])
            start = found.end()
    return [part for part in (*parts, clause[start:]) if part.strip()]


def is_risky_talk(clause: str, context: str) -> Class | None:
    """Return the class that a clause is about, whether or not it asks for it."""
    for rule in RULES:
        for found in rule.verbs.finditer(clause):
            if found.lastgroup not in ("past", "third") and rule.about(
                clause, found, context, strong=rule.strong
            ):
                return rule.name
    return None
