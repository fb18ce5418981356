"""Words that code stores and pages show: statuses, kinds, choices, names of columns.

Rows have the English word; `word` translates it for a page. `gettext_noop` only makes a word known
to `manage.py makemessages`; a word that is marked in a page or a module is not listed here too.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext_noop as _

# Statuses of runs, steps, confirmations, outcomes, deliveries, tasks, targets, tokens, workers.
_STATUSES = (
    _("accepted"),
    _("active"),
    _("asked"),
    _("canceled"),
    _("closed"),
    _("completed"),
    _("confirmed"),
    _("created"),
    _("delivered"),
    _("disabled"),
    _("enabled"),
    _("expires soon"),
    _("hung"),
    _("idle"),
    _("in use"),
    _("interrupted"),
    _("invalid"),
    _("invalid: the row was changed or inserted by other means"),
    _("lost"),
    _("main constraint"),
    _("no answer"),
    _("not done"),
    _("not needed"),
    _("obsolete"),
    _("ongoing"),
    _("partial"),
    _("partial success"),
    _("paused"),
    _("pending"),
    _("queued"),
    _("retired"),
    _("retrying"),
    _("revoked"),
    _("running"),
    _("saved"),
    _("skipped"),
    _("started"),
    _("succeeded"),
    _("success"),
    _("superseded"),
    _("takeover"),
    _("valid: this installation wrote the row"),
    _("waiting"),
    _("waiting for a person"),
    _("withdrawn"),
)
# Verdicts, modes and kinds.
_KINDS = (
    _("act"),
    _("allow"),
    _("chat"),
    _("clarify"),
    _("clarify first"),
    _("confirm"),
    _("deny"),
    _("energy"),
    _("high"),
    _("identity"),
    _("local"),
    _("long"),
    _("low"),
    _("medium"),
    _("money"),
    _("no rule"),
    _("reliability"),
    _("remote"),
    _("shell"),
    _("short"),
    _("success path"),
    _("system"),
    _("asset"),
)
# Labels of choices, and what a cell shows instead of a value.
_CHOICES = (
    _("Browser"),
    _("Chat"),
    _("Delivered"),
    _("Deny"),
    _("Docker Runner"),
    _("Paired browser"),
    _("Partial"),
    _("Success"),
    _("Waiting"),
    _("Withdrawn"),
    _("no run"),
    _("no worker"),
    _("unknown"),
    _("Active"),
    _("Closed"),
    _("Open"),
    _("Shell"),
)
# Types of resources in the audit log.
_RESOURCES = (
    _("artifact"),
    _("decision"),
    _("operator"),
    _("rule"),
    _("run"),
    _("session"),
    _("task"),
    _("webhook"),
    _("tenant"),
)
# Labels of fields of forms.
_FIELDS = (
    _("Confirmation arguments"),
    _("Confirmations"),
    _("Every run"),
    _("Questions"),
    _("Trust"),
    _("Url"),
    _("Endpoint"),
)
# Names of columns that pages show without a label of their own.
_COLUMNS = (
    _("action"),
    _("at_least_once"),
    _("axis"),
    _("default"),
    _("file"),
    _("screenshot"),
    _("page"),
    _("delta"),
    _("event"),
    _("failure type"),
    _("host"),
    _("once"),
    _("read"),
    _("result"),
    _("trace"),
    _("upload"),
    _("key"),
    _("kind"),
    _("layer"),
    _("mime type"),
    _("name"),
    _("note"),
    _("process"),
    _("reason"),
    _("reported by"),
    _("source"),
    _("status code"),
    _("tenant id"),
    _("trust"),
    _("url"),
    _("user id"),
    _("version"),
    _("attempts"),
    _("cookies"),
    _("test"),
    _("error"),
    _("disabled because"),
    _("created by"),
    _("workspace id"),
)
# Models, as the permissions of operators name them.
_MODELS = (
    _("artifact upload"),
    _("audit entry"),
    _("audit seal"),
    _("axis value"),
    _("browser session"),
    _("chat answer"),
    _("conversation"),
    _("ended run"),
    _("evidence"),
    _("execution target"),
    _("keyed call"),
    _("load sample"),
    _("login link"),
    _("object"),
    _("object version"),
    _("open call"),
    _("paired browser"),
    _("pairing ticket"),
    _("policy rule"),
    _("policy stamp"),
    _("run event"),
    _("run key"),
    _("run secret"),
    _("run statistic"),
    _("run step"),
    _("run terms"),
    _("run total"),
    _("run total change"),
    _("saved view"),
    _("service beat"),
    _("slot"),
    _("task event"),
    _("task message"),
    _("task origin"),
    _("task ticket"),
    _("waiting email"),
    _("webhook delivery"),
)
# Texts of Unfold's templates, which has no translations.
_UNFOLD = (
    _("Run the selected action"),
    _("Welcome back to"),
    _("Apply Filters"),
    _("Clear all filters"),
    _("Select action to run"),
    _(" By %(filter_title)s "),
    _("Type to search"),
    _("Go back"),
    _("Select action"),
    _("True"),
    _("False"),
    _("After you've created a user, you’ll be able to edit more user options."),
    _(
        "Raw passwords are not stored, so there is no way to see this user’s password, but you can"
        ' change the password using <a href="{}" class="text-primary-600'
        ' dark:text-primary-500">this form</a>.'
    ),
)

# Kinds of processes.
_PROCESSES = (_("scheduler"), _("web"), _("worker"))


def word(text: str) -> str:
    """Return a stored word in the language of the page; a word that is unknown as it is."""
    return gettext(text) if text else ""


def lazy_word(text: Any) -> Any:
    """Return a word that is translated when a page shows it; a lazy text as it is."""
    return gettext_lazy(text) if isinstance(text, str) and text else text
