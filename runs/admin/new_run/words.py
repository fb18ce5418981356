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
# What the templates say about themselves and their inputs; `explained` translates it.
_TEMPLATES = (
    _("Agent task"),
    _("Read a batch of pages"),
    _("Call tools"),
    _("Log in and keep the session"),
    _("Compare pages"),
    _("Read a paginated list"),
    _("Replay a success path"),
    _("Search and read"),
    _("Browser action"),
    _("Submit a form and verify"),
    _(
        "Have a language model work towards a goal: it reads and acts with tools, asks the"
        " user where it has to, and answers, in the shape of options.outputSchema where one"
        " is given. Calls that policy wants confirmed wait for a person; the agent cannot"
        " confirm them."
    ),
    _(
        "Open each url in a real browser and return its title, type, interactive elements"
        " and readable text in sections. Pages that fail are reported item by item; the"
        " others are returned. The run keeps the whole text of each page: read_page_content"
        " reads and searches it."
    ),
    _(
        "Call up to 100 tools one after another as a durable run: tools for the files of a"
        " workspace, for pages (read_page, open_page, click_element, …; REST's GET"
        " /api/v1/tools lists all), and of the runner that targetId names. Every call is"
        " validated before the first is made; a call that was running when its worker was"
        " lost is repeated only if its tool may be called twice."
    ),
    _(
        "Fill in a login form in a real browser and leave the browser session open: with its"
        " sessionId later runs are logged in. The page that follows stays open for the"
        " browser actions, with which a second step (a code) is completed. The credentials"
        " are sealed, used once and deleted; such a run cannot be retried, submit it again"
        " instead."
    ),
    _(
        "Open two to ten pages side by side and return a snapshot of each and how they"
        " differ: title, number of usable elements, first headings of the whole text. Pages"
        " that fail are reported one by one; the others are compared. The texts are compared"
        " by reading them: read_page_content reads and searches the whole text of each page."
    ),
    _(
        "Open a list, read its page, click “next” and continue until maxPages, a page that"
        " repeats, or no next page; stoppedReason says which; a warning, if the list seems"
        " to go on. Works for links and for lists that a script fills. If a page fails, the"
        " pages before it are still returned."
    ),
    _(
        "Run the stored steps of a success path again, with other values for its slots and"
        " without a model. All steps are validated before the first one starts; policy"
        " authorizes each. A step that waits for a condition in vain, or gets a page with an"
        " HTTP error status, fails."
    ),
    _(
        "Open a page, type a query into its search field, submit it, wait for the results"
        " and read them, or open one of them and read that. Fields, buttons and results are"
        " found by CSS selector or by words in English or Chinese. It fails if nothing shows"
        " that the search happened: no request and no address has the query, and the page"
        " shows nothing new."
    ),
    _(
        "Open a page, fill the fields of a form, submit it exactly once, and verify by an"
        " indicator that it was accepted; then read the page. A submit whose worker was lost"
        " is never repeated. The result names the fields, not their values; the page that is"
        " read may show them, unless a field is secret."
    ),
)
_INPUTS = (
    _("What the user wants."),
    _("The page to begin on: the run opens it before the model's first turn."),
    _("What the agent should know beforehand."),
    _("Turns of the model; in the last one it can only complete."),
    _(
        "The workspace that its tools work in; by default the caller's default one. plugin,"
        " or a plc_… id, is the caller's paired browser, as selectedClientId."
    ),
    _(
        "The browser that you paired, in which the run acts: its plc_… id, or plugin for the"
        " one that is connected. Default: a browser of the worker."
    ),
    _(
        "Names of the tools that it may use, those of runners as bash.exec, or as"
        " bash.exec@TARGET for one runner; by default all that the caller may use."
    ),
    _("JSON Schema of the output; the same as options.outputSchema."),
    _("The task (conversation) that this run answers in."),
    _("http(s) URLs; each is one step of the run."),
    _("How much of each page to return."),
    _("Title, type, summary and the usable elements."),
    _("The text, as sections under their headings."),
    _("Maximum number of elements."),
    _("Maximum number of characters of content."),
    _("Tabs that work at once."),
    _(
        "A page with an HTTP error status (404, 500): fail, with details.httpStatus and the"
        " page's text in details.artifactId; or keep it as a page like any other."
    ),
    _("plugin, or a plc_… id: your paired browser, as selectedClientId."),
    _("One tool call."),
    _("A field of the form and its value."),
    _("A tool's name."),
    _("As the tool's schema says."),
    _("Where it is executed; by default the default target of the tool's kind."),
    _(
        "For a runner's tool that has the name of a local tool: the workspace in which the"
        " local tool performs the call if the runner is unreachable and its target falls"
        " back."
    ),
    _("The call's time limit; the tool's own limit applies if it is shorter."),
    _("Whether the first call that fails ends the run; if false, all are made."),
    _("The page with the form."),
    _("The account; the values are sealed at submit and deleted after the run's last step."),
    _(
        "The form's fields: a locator each, or the short form, in which all are CSS"
        " selectors or all\nare words."
    ),
    _("Identifies an element: by a CSS selector, or by words that a person would use for it."),
    _("selector: CSS in `selector`. semantic: words in `query`, English or Chinese."),
    _("With mode selector: a CSS selector; its first usable match is chosen."),
    _(
        "With mode semantic: words matched against role, accessible name, label, placeholder"
        " and text; the best candidate is chosen and reported."
    ),
    _("The button; by default that of the filled form."),
    _("For the short form: the kind of the fields below it."),
    _(
        "A condition that holds only after a successful login; without it loginState is"
        " unknown, or the run fails if the page still asks for a password."
    ),
    _("A visible element, a part of the URL or text, or a page that stopped changing."),
    _("The selector, or the part of the URL or text; not for type stable."),
    _("How long to wait for it."),
    _("Different http(s) URLs; each is one step of the run."),
    _("How much of the page to return; by default elements and text, shortened."),
    _("By default all fields, exactly."),
    _("All three by default."),
    _("How many headings of each page are compared."),
    _("Element counts that differ by no more than this count as equal."),
    _("The http(s) URL to start at."),
    _("How to get from one page to the next."),
    _("What to click for the next page."),
    _("Pages to read at most, the first included."),
    _("A condition that holds once a page has loaded."),
    _("object_id of a success path whose procedure is steps of tools."),
    _("The version; by default the current one."),
    _("The workspace for workspace tools; by default the caller's default one."),
    _(
        "A value for every slot that the path requires or its steps use. No secrets: the"
        " values are stored in the run's journal."
    ),
    _("What to search for."),
    _("The field that takes the query."),
    _(
        "The button that starts the search; by default the form's own, or Enter, or, if"
        " Enter starts nothing, the search button beside the field."
    ),
    _(
        "The result to open and read; of several that fit alike, the first. Without it the"
        " list of results is read."
    ),
    _("A condition that holds once the results are shown."),
    _("Filled in this order."),
    _("The field's name in the result."),
    _("Text to type; the label of an option; true or false for a checkbox; YYYY-MM-DD for a date."),
    _("True: the value is stored sealed and shown nowhere."),
    _("The button to click; by default the filled form's submit button, or Enter."),
    _(
        "Answer to the question (confirm, prompt) that the page asks because of this action;"
        " without it, such questions are dismissed."
    ),
    _("Accept the question, or dismiss it."),
    _("The answer to a prompt."),
    _("A condition that holds for the page once the form was accepted."),
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
