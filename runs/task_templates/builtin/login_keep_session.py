"""The template `login_keep_session`: log in with a form and leave the session open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from django.utils.translation import gettext_noop as _
from pydantic import AfterValidator, BaseModel, Field, StrictStr, model_validator

from runners.actions.catalogue import OBSERVE
from runners.browser.parameters import Locator, WaitCondition
from runners.tools.base import Closed, Effect
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepContext, StepPlan, StepView, TaskTemplate
from runs.task_templates.outcomes import warnings_of
from runs.task_templates.page_inputs import held_before, open_start_page, with_scheme
from runs.task_templates.registry import register
from runs.task_templates.subjects import place_of

OPEN, USERNAME, PASSWORD, SEND, CHECK = range(5)
FIELD_OF = {USERNAME: "username", PASSWORD: "password", SEND: "submit"}
FIELD_NOT_FOUND = "TPL_LOGIN_FIELD_NOT_FOUND"
RECOVERY = "Correct the locators in inputs.fields."
HELD_BEFORE = (
    "The success indicator held before the login too, so it shows nothing: whether the login worked"
    " is unknown. Give one that holds only after the login."
)
READ = "Read pages in the logged-in session."
READ_IF_COMPLETE = "If the login is complete: read pages in this session."


class Credentials(Closed):
    """The account; the values are sealed at submit and deleted after the run's last step."""

    username: StrictStr = Field(
        min_length=1, max_length=1024, json_schema_extra={"writeOnly": True}
    )
    password: StrictStr = Field(
        min_length=1, max_length=1024, json_schema_extra={"writeOnly": True, "format": "password"}
    )


class LoginFields(Closed):
    """The form's fields: a locator each, or the short form, in which all are CSS selectors or all
    are words.
    """

    username: Locator | None = None
    password: Locator | None = None
    submit: Locator | None = Field(
        default=None, description=_("The button; by default that of the filled form.")
    )
    mode: Literal["selector", "semantic"] | None = Field(
        default=None, description=_("For the short form: the kind of the fields below it.")
    )
    username_selector: StrictStr | None = Field(
        default=None, alias="usernameSelector", min_length=1, max_length=2000
    )
    password_selector: StrictStr | None = Field(
        default=None, alias="passwordSelector", min_length=1, max_length=2000
    )
    submit_selector: StrictStr | None = Field(
        default=None, alias="submitSelector", min_length=1, max_length=2000
    )
    username_query: StrictStr | None = Field(
        default=None, alias="usernameQuery", min_length=1, max_length=500
    )
    password_query: StrictStr | None = Field(
        default=None, alias="passwordQuery", min_length=1, max_length=500
    )
    submit_query: StrictStr | None = Field(
        default=None, alias="submitQuery", min_length=1, max_length=500
    )

    @model_validator(mode="after")
    def _names_both(self) -> LoginFields:
        for name in ("username", "password"):
            if self.locator(name) is None:
                raise ValueError(f"there is no locator for the {name}")
        return self

    def locator(self, name: str) -> Locator | None:
        """Return the locator of `username`, `password` or `submit`, or None."""
        whole: Locator | None = getattr(self, name)
        if whole is not None or self.mode is None:
            return whole
        kind = "selector" if self.mode == "selector" else "query"
        text = getattr(self, f"{name}_{kind}")
        return None if text is None else Locator.model_validate({"mode": self.mode, kind: text})


class LoginKeepSessionInputs(Closed):
    """The inputs of `login_keep_session`."""

    start_url: Annotated[StrictStr, AfterValidator(with_scheme)] = Field(
        alias="startUrl", min_length=1, max_length=8192, description=_("The page with the form.")
    )
    credentials: Credentials
    fields: LoginFields
    success_indicator: WaitCondition | None = Field(
        default=None,
        alias="successIndicator",
        description=_(
            "A condition that holds only after a successful login; without it loginState"
            " is unknown, or the run fails if the page still asks for a password."
        ),
    )


@register
class LoginKeepSession(TaskTemplate):
    """Five steps on one page; the session stays open even if the login fails."""

    template_id = "login_keep_session"
    name = _("Log in and keep the session")
    description = _(
        "Fill in a login form in a real browser and leave the browser session open: with its"
        " sessionId later runs are logged in. The page that follows stays open for the browser"
        " actions, with which a second step (a code) is completed. The credentials are sealed, used"
        " once and deleted; such a run cannot be retried, submit it again instead."
    )
    inputs_model: ClassVar[type[BaseModel]] = LoginKeepSessionInputs
    example_inputs = (
        {
            "startUrl": "https://example.com/login",
            "credentials": {"username": "alice", "password": "correct horse"},
            "fields": {
                "username": {"mode": "semantic", "query": "user name"},
                "password": {"mode": "semantic", "query": "password"},
            },
            "successIndicator": {"type": "textIncludes", "value": "Log out"},
        },
    )
    result_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "success": {"type": "boolean"},
            "sessionId": {"type": "string"},
            "finalUrl": {"type": "string"},
            "title": {"type": "string"},
            "loginState": {"type": "string", "enum": ["authenticated", "unknown"]},
            "cookiesSaved": {"type": "boolean"},
        },
        "required": ["success", "sessionId", "finalUrl", "title", "loginState", "cookiesSaved"],
    }
    trust_levels = ("local",)
    uses_browser = True
    shares_page = True
    keeps_session = True
    limits = {"steps": 5}

    def session_name(self, inputs: Mapping[str, Any]) -> str:
        """Return the host name of the login page."""
        return (urlsplit(inputs["startUrl"]).hostname or self.name)[:128]

    def subject(self, inputs: Mapping[str, Any]) -> str:
        """Return the address of the login page."""
        return place_of(inputs["startUrl"])

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return the five steps."""
        page = {"url": inputs["startUrl"]}
        return [
            StepPlan("open the login page", page),
            StepPlan("fill in the username", page, needs_secrets=True),
            StepPlan("fill in the password", page, needs_secrets=True),
            StepPlan("send the form", page, Effect.ONCE, needs_secrets=True),
            # Uses no secret, but its output about the page must be masked, also after a suspension.
            StepPlan("check the login", page, needs_secrets=True),
        ]

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Perform one of the five steps."""
        names = [planned.name for planned in self.plan(ctx.inputs)]
        index = names.index(step.name)
        if index == OPEN:
            condition = ctx.inputs.get("successIndicator")
            opened = await open_start_page(step.input["url"], condition, ctx)
            return {**opened, "sessionId": ctx.session_id}
        if index == CHECK:
            indicator = ctx.inputs.get("successIndicator")
            held = bool(held_before(ctx.earlier))
            checked = await ctx.call("check_login", {"indicator": indicator, "heldBefore": held})
            warnings = [*([HELD_BEFORE] if held else []), *checked["warnings"]]
            return {**checked, "warnings": warnings}
        fields = LoginFields.model_validate(ctx.inputs["fields"])
        locator = fields.locator(FIELD_OF[index])
        args: dict[str, Any] = {}
        if locator is not None:
            args["locator"] = locator.model_dump(exclude_none=True)
        if index == SEND:
            return await ctx.call("submit_form", args)
        return await ctx.call("fill_field", args | {"secret": f"credentials.{FIELD_OF[index]}"})

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return the session and whether the login worked, or the error."""
        failed = next((step for step in steps if step.error is not None), None)
        session_id = str((steps[OPEN].output or {}).get("sessionId", ""))
        if failed is not None or not steps[CHECK].succeeded:
            return _not_logged_in(inputs, failed or steps[CHECK], session_id)
        checked = steps[CHECK].output or {}
        state = "authenticated" if checked["met"] else "unknown"
        result = {
            "success": True,
            "sessionId": session_id,
            "finalUrl": checked["url"],
            "title": checked["title"],
            "loginState": state,
            "cookiesSaved": checked["cookies"] > 0,
        }
        unknown = "The login form was sent; whether the login worked is unknown"
        outcome = "Logged in" if checked["met"] else unknown
        read_page = {
            "templateId": "batch_extract_pages",
            "sessionId": session_id,
            "inputs": {"urls": [checked["url"]]},
        }
        return Conclusion(
            RunStatus.SUCCEEDED,
            result=result,
            summary=f"{outcome}; the session {session_id} stays open",
            warnings=warnings_of(steps),
            next_actions=[
                *([] if checked["met"] else [_observe(session_id)]),
                _action(read_page, READ if checked["met"] else READ_IF_COMPLETE),
            ],
        )


def _not_logged_in(inputs: Mapping[str, Any], step: StepView, session_id: str) -> Conclusion:
    cause = step.error or {
        "errorCode": "STEP_EXECUTION_FAILED",
        "message": f"The step '{step.name}' was not performed.",
    }
    error = {**cause, "step": {"step": step.index, "name": step.name}}
    actions: list[Mapping[str, Any]] = []
    if step.index in FIELD_OF and cause["errorCode"] == "ELEMENT_NOT_FOUND":
        field = FIELD_OF[step.index]
        details = {**(cause.get("details") or {}), "field": field}
        error |= {
            "errorCode": FIELD_NOT_FOUND,
            "message": f"No element of the login form fits {field}: {cause['message']}",
            "details": {**details, "causeCode": "ELEMENT_NOT_FOUND"},
            "retryable": False,
            "recovery": RECOVERY,
        }
        read_page = {
            "templateId": "batch_extract_pages",
            "sessionId": session_id,
            "inputs": {"urls": [inputs["startUrl"]]},
        }
        actions.append(_action(read_page, "See which fields the page has."))
    screenshot = (cause.get("details") or {}).get("screenshotArtifactId")
    if screenshot:
        reason = "See what the page showed."
        args = {"artifactId": screenshot}
        actions.append({"tool": "get_artifact", "args": args, "reason": reason})
    return Conclusion(
        RunStatus.FAILED, error=error, summary=str(error["message"]), next_actions=actions
    )


def _observe(session_id: str) -> dict[str, Any]:
    reason = "See the page that followed: it may ask for a code, which browser_type can enter."
    return {"tool": OBSERVE.name, "args": {"sessionId": session_id}, "reason": reason}


def _action(args: Mapping[str, Any], reason: str) -> dict[str, Any]:
    return {"tool": "run_task_template", "args": args, "reason": reason}
