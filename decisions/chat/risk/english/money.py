"""Spending and moving money, in English: the verbs, and the objects that make them risky."""

from __future__ import annotations

import re
from functools import lru_cache

from decisions.chat.risk.english.grammar import verbs

PAY = verbs(
    "pay pay_off wire refund remit reimburse purchase buy donate disburse venmo paypal zelle"
    " overpay prepay repay cash_out check_out",
    nouns="payment refund payout purchase disbursement reimbursement donation wire remittance",
)
MOVE = verbs(
    "transfer send move deposit withdraw invest charge settle spend tip lend loan top_up advance"
    " sell subscribe renew book order put give release approve authorize clear cover bet stake bid"
    " trade swap let_have credit cut upgrade hand place wager sign_up forward contribute convert"
    " liquidate execute process set_up make issue get reserve grab take submit extend return"
    " reload fund double increase raise",
    nouns="transfer withdrawal deposit payment payout refund trade order",
)
_AMOUNT = (
    r"(?:[$€£¥]\s?\d|\b\d[\d,.]*\s?(?:k|m|mm|million|thousand|grand)?\s?(?:dollars?|bucks|usd|eur"
    r"|euros?|gbp|pounds|rmb|cny|yuan|yen|btc|eth|usdt|usdc|sol|bitcoins?|francs|chf|inr|rupees"
    r"|quid)\b|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty"
    r"|forty|fifty|hundred|thousand|million|grand)(?: \w+)? (?:dollars?|bucks|euros?|pounds|usd)\b)"
)
_IS_AMOUNT = re.compile(
    rf"{_AMOUNT}|\b(?:money|funds|cash|payments?|payouts?|invoices?|bills?|payroll|salar(?:y|ies)"
    rf"|wages|refunds?|bitcoins?|crypto\w*"
    r"|shares of|stocks?|wire transfers?|bank transfers?|deposit|subscriptions?|paid plan"
    r"|premium plan|enterprise plan|pro plan|gift cards?|purchase order|an order|the order for"
    r"|tickets?|flights?|hotel\w*|escrow|bonus(?:es)?|savings|donation|debt|rent|mortgage|(?:in"
    r"|of) (?:my|the|our) (?:basket|cart)|entire portfolio|holdings|position|credit card"
    r"|expenses?)\b|\bstock\b|\b(?:yearly|annual|monthly|business|team) (?:plan|membership)\b"
    r"|\b(?:sell|trade|liquidate|half of)\b.*\bshares\b|\b(?:checking|brokerage|spend)\b"
    r"|\b(?:extend|renew)\b.*\b(?:contract|plan|membership|lease|licen[cs]e|hosting|domain)\b"
    r"|\b\d[\d,.]*k?\s+(?:into|in)\b.*\b(?:funds?|account|stocks?|portfolio|etf|bonds?|crypto)\b"
)
_NO_PAY = re.compile(
    r"^\s*(?:(?:more |close |special |careful |particular )?attention|heed|respects?|homage|tribute"
    r"|a visit|off(?! (?:the|my|our)\b)|lip service|dividends|in\b|time|into|a compliment"
    r"|compliments|up(?! for)|dearly)"
)
_NO_MOVE = re.compile(
    r"\b(?:send|forward|share|give|hand)\b.*\b(?:copy|pdf|summary|report|link|reminder|email about"
    r"|details?|number of|overview|status|receipt|screenshot|list|draft|template|breakdown"
    r"|comparison)\b|\bcover letter\b|\bmake sure\b|\bput (?:it |this |that )?together\b|\b(?:move"
    r"|forward|transfer|send) (?:the|this|that|these|those|my|our|all) (?:\w+ )?(?:invoices?|bills?"
    r"|tickets?|expenses?|receipts?) (?:to|into|over to)"
)


_BUYS = ("order", "reserve", "book", "get", "grab")
_GOODS = re.compile(
    r"\s+(?:(?:me|us|him|her|them|everyone) (?:an?|some|two|three|four|five|six"
    r"|\d+) (?!\w* ?(?:lists?|ideas?|overview|summary|examples?|quotes?|answers?|estimates?"
    r"|offers?)\b)|(?:another|some more|\d+|two|three|four|five|six|ten|twelve|twenty|a dozen) )"
)
_ORDERS = re.compile(r"(?:^|\b(?:please|you|to|and|then|just|now|also|us)\s+)$")
_SORTS = re.compile(
    r"^\s*(?:of|by|in|from|matters|form|number|here)\b|\b(?:by|alphabetical\w*|ascending|descending"
    r"|chronological\w*|first to last|lists?|items|rows|columns|names|chapters|entries|results"
    r"|steps|tasks)\b"
)
_BOOKED = re.compile(r"\s+(?:an?|the|it|me|us|him|her|them|my|our|that|this|two|\d)\b")


# Of a clause with many verbs, each verb requests the same.
@lru_cache(maxsize=8)
def _moves_no_money(clause: str) -> bool:
    return bool(_NO_MOVE.search(clause))


@lru_cache(maxsize=8)
def _names_amount(clause: str) -> bool:
    return bool(_IS_AMOUNT.search(clause))


def _buys(clause: str, found: re.Match[str], after: str) -> bool:
    """Return whether a verb that has other meanings too buys something here."""
    if _GOODS.match(after):
        return True
    if found[0] == "order":
        return bool(_ORDERS.search(clause[: found.start()]) and not _SORTS.search(after))
    return found[0] in ("book", "reserve") and bool(_BOOKED.match(after)) and _names_amount(clause)


def is_about_money(clause: str, found: re.Match[str], context: str, *, strong: bool) -> bool:
    """Return whether the verb spends, moves or commits money."""
    after = clause[found.end() :]
    if (strong and _NO_PAY.search(after)) or (not strong and _moves_no_money(clause)):
        return False
    if found[0] in _BUYS:
        return _buys(clause, found, after)
    if strong:
        return bool(after.strip() or _IS_AMOUNT.search(context))
    if _names_amount(clause):
        return True
    return bool(re.match(r"\s*(?:it|them|that|this)\b", after) and re.search(_AMOUNT, context))
