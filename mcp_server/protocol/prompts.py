"""Prompts for the usual jobs: a person picks one in the host and fills in its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mcp_types as types

from decisions.foundation.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class JobPrompt:
    """A prompt; `{name}` in the text stands for an argument, all of which are required."""

    name: str
    title: str
    description: str
    arguments: Mapping[str, str]
    text: str


_JOBS = (
    JobPrompt(
        "read_pages",
        "Read web pages",
        "Read several web pages and answer a question about them.",
        {"urls": "The pages' URLs, separated by spaces.", "question": "What you want to know."},
        "Read these pages with run_task_template, template batch_extract_pages: {urls}\n"
        "Then answer from their text alone, and name the page of each fact. Read only the parts"
        " you need, with read_page_content. Name pages that could not be read.\n"
        "Question: {question}",
    ),
    JobPrompt(
        "log_in",
        "Log in to a site",
        "Log in to a site and keep the browser session for later runs.",
        {"url": "The URL of the login form."},
        "Log in at {url} with run_task_template, template login_keep_session (list_task_templates"
        " with its templateId returns its inputs). Ask me for the credentials, use them for nothing"
        " else and do not repeat them. Tell me the sessionId at the end: later runs that name it"
        " are logged in.",
    ),
    JobPrompt(
        "collect_list",
        "Collect a list over several pages",
        "Read all pages of a list and return its entries.",
        {"url": "The first page of the list.", "fields": "What to note of each entry."},
        "Read the list at {url} with run_task_template, template paginated_extract, following its"
        " next links to the last page. Return one line per entry with: {fields}. Say how many"
        " entries and pages there were, and whether the list ended or a limit was reached.",
    ),
    JobPrompt(
        "fill_form",
        "Fill in a form",
        "Fill in a form, submit it once and verify that it was accepted.",
        {"url": "The page with the form.", "values": "What to enter, as `field: value`."},
        "Fill in the form at {url} with: {values}\n"
        "Show me first what you will submit, and wait for my agreement. Then use run_task_template,"
        " template submit_and_verify, once. If the outcome is unknown, check it on the site and do"
        " not submit again.",
    ),
    JobPrompt(
        "delegate_goal",
        "Hand a goal to the agent",
        "Let Continuity's own agent work towards a goal.",
        {"goal": "What is to be achieved."},
        "Start run_task_template, template agent_task, options.mode async, with this goal: {goal}\n"
        "Follow it with wait_task_run. If it asks a question (waitingFor.type answer), ask me and"
        " pass on my answer with answer_task_run. If it waits for a confirmation, tell me what it"
        " wants to do; only a person can confirm, outside this conversation.",
    ),
)
JOB_PROMPTS: Mapping[str, JobPrompt] = {job.name: job for job in _JOBS}


def list_prompts() -> list[types.Prompt]:
    """Return the entries of prompts/list."""
    return [
        types.Prompt(
            name=job.name,
            title=job.title,
            description=job.description,
            arguments=[
                types.PromptArgument(name=name, description=description, required=True)
                for name, description in job.arguments.items()
            ],
        )
        for job in _JOBS
    ]


def get_prompt(name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """Return a prompt with its arguments filled in.

    Raises:
        InvalidInput: There is no prompt of this name; an argument is missing, blank or unknown.
    """
    job = JOB_PROMPTS.get(name)
    if job is None:
        raise InvalidInput(
            f"There is no prompt {name[:64]!r}.", recovery="Use a name from prompts/list."
        )
    for unknown in sorted(arguments.keys() - job.arguments.keys()):
        raise InvalidInput(f"{unknown[:64]}: the prompt {name} has no such argument.")
    for required in job.arguments:
        if not arguments.get(required, "").strip():
            raise InvalidInput(f"{required}: the prompt {name} needs this argument.")
    text = types.TextContent(text=job.text.format_map(arguments))
    return types.GetPromptResult(
        description=job.description, messages=[types.PromptMessage(role="user", content=text)]
    )
