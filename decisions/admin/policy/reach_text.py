"""Say in a person's language what a policy rule does, or does no longer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from decisions.authorization.policy import ANY_TOOL, HIGH_RISK
from decisions.authorization.rule_reach import RuleReach

_DOES = {
    ("allow", False): gettext_lazy("This rule allows %(what)s."),
    ("deny", False): gettext_lazy("This rule denies %(what)s."),
    ("confirm", False): gettext_lazy("This rule requires a confirmation for %(what)s."),
    ("allow", True): gettext_lazy("The rule no longer allows %(what)s."),
    ("deny", True): gettext_lazy("The rule no longer denies %(what)s."),
    ("confirm", True): gettext_lazy("The rule no longer requires a confirmation for %(what)s."),
}
_DECIDED = {
    "deny": gettext_lazy("%(n)d denied"),
    "confirm": gettext_lazy("%(n)d held for a confirmation"),
    "allow": gettext_lazy("%(n)d allowed"),
}
NAMED = 3  # tools that the summary names


def sentences_of(reach: RuleReach) -> list[str]:
    """Say in words what a rule does, or does no longer."""
    if not (reach.decided or reach.unlisted or reach.alike):
        return _without_effect(reach)
    found = [_summary(reach), _difference(reach)] if reach.decided else []
    if reach.unlisted:
        found.append(_of_unlisted(reach))
    if reach.alike:
        found.append(_of_alike(reach))
    if reach.stricter:
        text = _("Where such a call does the same as %(tools)s, a stricter rule on that decides.")
        found.append(text % {"tools": listed(reach.stricter)})
    if reach.overruled and not reach.ends:
        found.append(
            ngettext(
                "On %(n)d further call that it matches, another rule decides: a stricter or a"
                " narrower one.",
                "On %(n)d further calls that it matches, another rule decides: a stricter or a"
                " narrower one.",
                reach.overruled,
            )
            % {"n": reach.overruled}
        )
    return found


def _does(reach: RuleReach, what: str) -> str:
    return str(_DOES[reach.rule.verdict, reach.ends] % {"what": what})


def _of_alike(reach: RuleReach) -> str:
    tools = sorted({one.call.tool for one in reach.alike})
    what = _("what does the same with other tools: %(tools)s") % {"tools": listed(tools)}
    return _does(reach, what)


def _of_unlisted(reach: RuleReach) -> str:
    names, number = listed(reach.unlisted), len(reach.unlisted)
    if reach.rule.tool != ANY_TOOL:
        text = ngettext(
            "%(names)s does not say which tools it offers: the rule decides on %(tool)s if offered"
            " there.",
            "%(names)s do not say which tools they offer: the rule decides on %(tool)s if offered"
            " there.",
            number,
        )
        return text % {"names": names, "tool": reach.rule.tool}
    if reach.ends:
        text = ngettext(
            "the tools of %(names)s, which does not say which tools it offers",
            "the tools of %(names)s, which do not say which tools they offer",
            number,
        )
    else:
        text = ngettext(
            "every tool of %(names)s, which does not say which tools it offers",
            "every tool of %(names)s, which do not say which tools they offer",
            number,
        )
    return _does(reach, text % {"names": names})


def _summary(reach: RuleReach) -> str:
    tools = sorted(
        {one.call.tool for one in reach.decided}, key=lambda name: (name not in HIGH_RISK, name)
    )
    what = ngettext("%(n)d tool", "%(n)d tools", len(tools)) % {"n": len(tools)}
    if reach.rule.tool == ANY_TOOL and not reach.ends:
        what = _("every tool (%(tools)s known now)") % {"tools": what}
    number = len({one.call.runs_on for one in reach.decided})
    targets = ngettext("%(n)d target", "%(n)d targets", number) % {"n": number}
    where = _("%(tools)s on %(targets)s")
    if reach.covers_later_targets:
        where = _("%(tools)s on %(targets)s and every target added later")
    what = where % {"tools": what, "targets": targets}
    named = [name for name in tools if name in HIGH_RISK] or tools[:NAMED]
    if named:
        names = _("%(what)s: %(names)s")
        if len(tools) > len(named):
            names = _("%(what)s, among them %(names)s")
        what = names % {"what": what, "names": listed(named)}
    return _does(reach, what)


def _difference(reach: RuleReach) -> str:
    if not reach.changed:
        if reach.ends:
            return _("From then on the same is decided on all of them.")
        return _("Today the same is decided on all of them.")
    verdicts = [one.after if reach.ends else one.before for one in reach.changed]
    counts: Counter[str] = Counter(verdict.decision for verdict in verdicts)
    parts = [str(text % {"n": counts[it]}) for it, text in _DECIDED.items() if counts[it]]
    number = len(reach.decided)
    if reach.ends:
        text = ngettext(
            "From then on, of %(n)d such call: %(parts)s%(rest)s.",
            "From then on, of %(n)d such calls: %(parts)s%(rest)s.",
            number,
        )
    else:
        text = ngettext(
            "Today, of %(n)d such call: %(parts)s%(rest)s.",
            "Today, of %(n)d such calls: %(parts)s%(rest)s.",
            number,
        )
    rest = _rest(number - len(reach.changed), ends=reach.ends)
    return text % {"n": number, "parts": listed(parts), "rest": rest}


def _rest(same: int, *, ends: bool) -> str:
    if not same:
        return ""
    if ends:
        return _("; %(n)d decided the same way as today") % {"n": same}
    return _("; %(n)d decided the same way as with the rule") % {"n": same}


def _without_effect(reach: RuleReach) -> list[str]:
    why = _("No known call matches: check the name of the tool and the target.")
    if reach.overruled:
        why = _("It has no effect now: other rules decide on every call that it matches.")
    elif reach.ends:
        why = _("The rule in force decides on no known call.")
    if not reach.covers_later_targets:
        return [why]
    if reach.ends:
        return [why, _("It no longer applies to every target added later.")]
    return [why, _("It applies to every target added later.")]


def listed(names: Sequence[str]) -> str:
    """Join names as a sentence does: `a, b and c`."""
    if len(names) == 1:
        return names[0]
    first = pgettext("between the names of a list", ", ").join(names[:-1])
    return _("%(first)s and %(last)s") % {"first": first, "last": names[-1]}
