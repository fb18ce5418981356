"""The words of the form of a new run: titles of the inputs of the templates, and explanations.

The schemas of templates have no titles, because models pay for each token of them. A template of
another module may have inputs without a title here: their names become one.
"""

from __future__ import annotations

import re

from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")
# By the end of an input's path, which begins with its template: the longest end that fits counts.
_TITLES = {
    "goal": _("Goal"),
    "startUrl": _("Start page"),
    "context": _("Background"),
    "maxSteps": _("Turns at most"),
    "targetId": _("Workspace or browser"),
    "selectedClientId": _("Your paired browser"),
    "tools": _("Tools it may use"),
    "outputSchema": _("Shape of the output"),
    "taskId": _("Task"),
    "urls": _("Pages"),
    "extract": _("What to read"),
    "pageInfo": _("Page information"),
    "content": _("Text"),
    "maxElements": _("Elements at most"),
    "maxContentLength": _("Characters of text at most"),
    "concurrency": _("Pages at once"),
    "onHttpError": _("If a page answers with an error"),
    "calls": _("Calls"),
    "calls.name": _("Tool"),
    "args": _("Arguments"),
    "calls.targetId": _("Target"),
    "fallbackTargetId": _("Fallback workspace"),
    "timeoutMs": _("Time limit in ms"),
    "stopOnError": _("Stop at the first error"),
    "credentials": _("Credentials"),
    "username": _("User name"),
    "password": _("Password"),
    "login_keep_session.fields": _("Form fields"),
    "fields.username": _("User name field"),
    "fields.password": _("Password field"),
    "fields.submit": _("Sign-in button"),
    "mode": _("Find by"),
    "selector": _("CSS selector"),
    "query": _("Words"),
    "usernameSelector": _("Selector of the user name field"),
    "passwordSelector": _("Selector of the password field"),
    "submitSelector": _("Selector of the button"),
    "usernameQuery": _("Words for the user name field"),
    "passwordQuery": _("Words for the password field"),
    "submitQuery": _("Words for the button"),
    "successIndicator": _("How success shows"),
    "type": _("Condition"),
    "value": _("Value"),
    "compare": _("What to compare"),
    "compare.fields": _("Compared properties"),
    "topSections": _("Headings compared"),
    "numericTolerance": _("Allowed difference of counts"),
    "pagination": _("Next pages"),
    "next": _("Link or button to the next page"),
    "maxPages": _("Pages at most"),
    "waitFor": _("Wait for"),
    "objectId": _("Success path"),
    "version": _("Version"),
    "replay_success_path.targetId": _("Workspace"),
    "slots": _("Values of the slots"),
    "search_extract.query": _("Search for"),
    "searchField": _("Search field"),
    "submit": _("Submit button"),
    "openResult": _("Result to open"),
    "waitForResults": _("Wait for the results"),
    "submit_and_verify.fields": _("Fields"),
    "fields.name": _("Name"),
    "fields.value": _("Value to enter"),
    "locator": _("Where"),
    "secret": _("Secret"),
    "dialog": _("If the page asks"),
    "accept": _("Accept"),
    "text": _("Answer"),
}
_CHOICES = {
    "fail": _("report it as failed"),
    "keep": _("keep it as a page"),
    "selector": _("CSS selector"),
    "semantic": _("words on the page"),
    "urlContains": _("the URL contains"),
    "textIncludes": _("the text contains"),
    "stable": _("the page stopped changing"),
}
# Descriptions of inputs that cannot be marked where they stand: docstrings of their classes, and
# texts of tools, which do not import Django.
_INPUTS = (
    _("A field of the form and its value."),
    _("How to get from one page to the next."),
    _("One tool call."),
    _("The account; the values are sealed at submit and deleted after the run's last step."),
    _(
        "The form's fields: a locator each, or the short form, in which all are CSS selectors or"
        " all\nare words."
    ),
    _("Title, type, summary and the usable elements."),
    _("The text, as sections under their headings."),
    _("Maximum number of elements."),
    _("Maximum number of characters of content."),
    _("Identifies an element: by a CSS selector, or by words that a person would use for it."),
    _("selector: CSS in `selector`. semantic: words in `query`, English or Chinese."),
    _("With mode selector: a CSS selector; its first usable match is chosen."),
    _(
        "With mode semantic: words matched against role, accessible name, label, placeholder"
        " and text; the best candidate is chosen and reported."
    ),
    _("A visible element, a part of the URL or text, or a page that stopped changing."),
    _("The selector, or the part of the URL or text; not for type stable."),
    _("How long to wait for it."),
    _(
        "Answer to the question (confirm, prompt) that the page asks because of this action;"
        " without it, such questions are dismissed."
    ),
    _("Accept the question, or dismiss it."),
    _("The answer to a prompt."),
)


def title_of(template_id: str, key: str) -> str:
    """Return the title of an input by its key in the form, such as `inputs.fields.0.name`."""
    names = [part for part in key.split(".")[1:] if not part.isdecimal() and part != "__row__"]
    path = [template_id, *names]
    ends = (".".join(path[start:]) for start in range(len(path)))
    title = next((_TITLES[end] for end in ends if end in _TITLES), None)
    return gettext(title) if title else capfirst(_WORDS.sub(" ", path[-1]).lower())


def label_of_choice(value: str) -> str:
    """Return what the form shows for a choice: its label, else the value itself."""
    return gettext(_CHOICES[value]) if value in _CHOICES else value


def explained(text: str) -> str:
    """Return a description of a template or an input in the page's language."""
    return gettext(text) if text else ""
