"""Refusals in the language of a page.

What services refuse, they say in English: programs and models read it too. A page shows it in its
language where the text is one of these, `%(…)s` standing for the values in it; else in English.
"""

from __future__ import annotations

import re
from functools import cache

from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_noop as _

_OF_TASKS_AND_RUNS = (
    _("A message has 1 to %(most)s characters."),
    _("An answer has 1 to %(most)s characters."),
    _("Only a run that failed or was canceled can be retried; this one is %(status)s."),
    _("The question was answered already; this answer was not recorded."),
    _("The takeover was ended by another request."),
    _("There is no open session %(id)s."),
    _("There is no such workspace."),
    _("This run answers a message of a task; send the message to the task again."),
    _("This run does not wait for this answer: %(state)s."),
    _("This task has no run with this question."),
    _("This task is not taken over."),
    _("The run %(id)s uses this session; cancel it, or wait until it ends."),
    _("at most %(most)s with mode sync; use async."),
    _("there is no enabled webhook %(id)s."),
    _("this run held credentials, which were deleted; submit it again with them."),
    _("write name=value, or -name to remove one."),
    _("%(count)s labels, %(most)s are allowed."),
    _("%(label)s is given twice."),
    _("%(label)s is not written name=value."),
    _("a text of 1 to 100 characters without commas, control characters and blanks at its ends."),
    _(
        "the name %(name)s: 1 to 63 letters, digits and . _ / -, beginning with a letter or a"
        " digit."
    ),
)
_OF_RULES_AND_ACCESS = (
    _("A workspace has at most %(most)s webhooks; delete one first."),
    _("Only runners offer %(tool)s: name the runner as the target."),
    _("The webhook is disabled; enable it first."),
    _("There is no active rule %(id)s."),
    _("There is no valid token %(id)s."),
    _("%(tool)s is a high-risk tool."),
    _("What decision %(id)s is about has not changed; confirm or refuse it."),
    _("name a tool, or * for every one."),
    _("say why the rule exists. Callers and the person who confirms read it."),
    _("there is no %(scope)s %(id)s."),
)
_OF_TARGETS = (
    _("The target %(id)s belongs to another workspace."),
    _("The target was changed meanwhile. Read it again, then change it."),
    _("at most %(most)s bytes of JSON."),
    _("must be 1 to 128 printable characters."),
    _("must be 1 to 4096 visible ASCII characters without spaces."),
    _("must be a URL of at most %(most)s characters."),
    _("must be a list of principals, each local or token:ID."),
    _("must be a whole number of milliseconds, at least 1."),
    _("must be below one of CONTINUITY_WORKSPACE_ROOTS and outside of CONTINUITY_HOME."),
    _("must be one of %(values)s."),
    _("must be the absolute path of an existing folder."),
    _("only targets of kind docker-runner are probed."),
    _("secrets are not allowed here; use authToken."),
    _(
        "the folder overlaps one that belongs to another workspace. Choose another folder, or ask"
        " an operator."
    ),
    _("there is no such workspace or tenant."),
)
_OF_ADDRESSES = (
    _("Only http:// and https:// addresses can be opened."),
    _("The address contains a space or a control character; write a space as %%20."),
    _("The address contains a user name or password; leave it out."),
    _("The address contains characters that are not valid text."),
    _("The address has no host."),
    _("The address is longer than %(most)s bytes."),
    _("The address is malformed: the scheme must be followed by // and a host."),
    _("The host contains characters that are not allowed in host names."),
    _("The host is not a well-formed name or address."),
    _("The host name is an alternative spelling of another name; use that."),
    _("The host name is malformed."),
    _("The host name is unknown."),
    _("The port is not a number from 1 to 65535."),
    _("%(host)s is not a public address; remote callers reach public addresses only."),
    _("%(url)s has no scheme; write https:// or http:// before the host."),
)
_OF_JSON = (
    _("A string in the JSON contains a NUL character."),
    _("The JSON contains %(name)s, which is not a JSON number."),
    _("The JSON contains a number that is out of range."),
    _("The JSON contains an object with a duplicate key."),
    _("The JSON contains more than %(most)s values."),
    _("The JSON is nested deeper than %(most)s levels."),
    _("The text is not valid JSON: %(why)s."),
    _("The text is not valid UTF-8."),
)
# As the validator of JSON Schemas writes them.
_OF_SCHEMAS = (
    _("%(value)s does not match %(pattern)s"),
    _("%(value)s has less than %(least)s item"),
    _("%(value)s has less than %(least)s items"),
    _("%(value)s has more than %(most)s item"),
    _("%(value)s has more than %(most)s items"),
    _("%(value)s has non-unique elements"),
    _("%(value)s is greater than the maximum of %(most)s"),
    _("%(value)s is less than the minimum of %(least)s"),
    _("%(value)s is longer than %(most)s character"),
    _("%(value)s is longer than %(most)s characters"),
    _("%(value)s is not of type %(type)s"),
    _("%(value)s is not of types %(types)s"),
    _("%(value)s is not one of %(values)s"),
    _("%(value)s is not valid under any of the schemas listed in the 'anyOf' keyword"),
    _("%(value)s is not valid under any of the schemas listed in the 'oneOf' keyword"),
    _("%(value)s is shorter than %(least)s character"),
    _("%(value)s is shorter than %(least)s characters"),
    _("%(name)s is a required property"),
    _("Additional properties are not allowed (%(names)s was unexpected)"),
    _("Additional properties are not allowed (%(names)s were unexpected)"),
)
_TEXTS = (
    *_OF_TASKS_AND_RUNS,
    *_OF_RULES_AND_ACCESS,
    *_OF_TARGETS,
    *_OF_ADDRESSES,
    *_OF_JSON,
    *_OF_SCHEMAS,
)
_VALUE = re.compile(r"%\((\w+)\)s|%%")
_PATH = re.compile(r"([\w.\[\]-]{1,200}): (.+)", re.DOTALL)  # of the field that is refused


def refusal_text(message: str) -> str:
    """Return the message of a refusal in the language of the page, if it is known there."""
    if (get_language() or "en").startswith("en"):
        return message
    translated = _translated(message)
    if translated is None and (at_field := _PATH.fullmatch(message)):
        rest = _translated(at_field[2])
        translated = None if rest is None else f"{at_field[1]}: {rest}"
    return message if translated is None else translated


def _translated(message: str) -> str | None:
    for text, pattern in _patterns():
        if found := pattern.fullmatch(message):
            return gettext(text) % found.groupdict()
    return None


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return each text with the pattern of the messages that it stands for."""
    return tuple((text, re.compile(_pattern(text), re.DOTALL)) for text in _TEXTS)


def _pattern(text: str) -> str:
    parts, at = [], 0
    for value in _VALUE.finditer(text):
        parts.append(re.escape(text[at : value.start()]))
        parts.append(f"(?P<{value[1]}>.{{1,2000}}?)" if value[1] else "%")
        at = value.end()
    return "".join([*parts, re.escape(text[at:])])
