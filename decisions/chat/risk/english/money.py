"""Spending and moving money, in English: the verbs, and the objects that make them risky."""

from __future__ import annotations

import re
from functools import lru_cache

from decisions.chat.risk.english.grammar import verbs

PAY = verbs(
    "pay pay_off wire refund remit reimburse purchase buy donate disburse venmo paypal zelle"
    " overpay prepay"
    " repay cash_out check_out",
    nouns="payment refund payout purchase disbursement reimbursement donation wire remittance",
)
MOVE = verbs(
    "transfer send move deposit withdraw invest charge settle spend tip lend loan top_up"
    " advance sell"
    " subscribe renew book order put give release approve authorize clear cover bet stake bid"
    " trade swap"
    " let_have credit cut upgrade hand place wager sign_up forward contribute convert liquidate"
    " execute process set_up make issue",
    nouns="transfer withdrawal deposit payment payout refund trade order",
)
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


# Of a clause with many verbs, each verb requests the same.
@lru_cache(maxsize=8)
def _moves_no_money(clause: str) -> bool:
    return bool(_NO_MOVE.search(clause))


@lru_cache(maxsize=8)
def _names_amount(clause: str) -> bool:
    return bool(_IS_AMOUNT.search(clause))


def is_about_money(clause: str, found: re.Match[str], context: str, *, strong: bool) -> bool:
    """Return whether the verb spends, moves or commits money."""
    after = clause[found.end() :]
    if _NO_PAY.search(after) or (not strong and _moves_no_money(clause)):
        return False
    if strong:
        return (
            bool(_IS_MONEY.search(clause))
            or bool(re.match(r"\s*\S", after))
            or bool(_IS_AMOUNT.search(context))
        )
    if _names_amount(clause):
        return True
    return bool(re.match(r"\s*(?:it|them|that|this)\b", after) and re.search(_AMOUNT, context))
