"""S0's operations over REST, with the same schemas, services and queries as MCP."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from artifacts.selectors import list_run_artifacts
from decisions.rest_base.arguments import RequestArguments
from decisions.rest_base.openapi import READ_REFUSALS, WRITE_REFUSALS, operation
from decisions.rest_base.view import ApiView, json_response, principal_of
from runs.api import openapi
from runs.api.schemas import runs as schemas
from runs.conversations.run_messages import message_of_run
from runs.queries import runs, templates
from runs.queries.run_lists import list_runs_of_call
from runs.queries.visibility import visible_run
from runs.streaming.long_poll import WAIT_MAX_MS, submit_and_wait, wait_events, wait_run
from runs.streaming.sse import MEDIA_TYPE, PAGE, last_event_id, stream_events
from runs.submission import cancel, retry
from runs.submission.answer import answer_run

_UNFINISHED = ("queued", "running")

_NOTHING = RequestArguments(schemas.NO_INPUT)
_TEMPLATES = RequestArguments(schemas.GET_TASK_TEMPLATES_INPUT)
_RUN_ID = RequestArguments(schemas.RUN_ID_INPUT)
_LIST = RequestArguments(schemas.LIST_TASK_RUNS_INPUT)
_SUBMIT = RequestArguments(schemas.RUN_TASK_TEMPLATE_INPUT)
_ANSWER = RequestArguments(schemas.ANSWER_TASK_RUN_INPUT)
_WAIT = RequestArguments(schemas.WAIT_TASK_RUN_INPUT)
_EVENTS = RequestArguments(schemas.SUBSCRIBE_INPUT)

_IN_PATH = {"runId": "From the response to the submit."}


class TemplatesView(ApiView):
    """GET /templates."""

    scopes = {"GET": "runs:read"}

    @operation(
        "listTaskTemplates",
        "Templates that can be run",
        tag="runs",
        response=openapi.TEMPLATES,
        arguments=_TEMPLATES,
        refusals=READ_REFUSALS,
    )
    def get(self, request: Request) -> HttpResponse:
        """Every template, or only `templateId`, with the schemas of its inputs and its result."""
        chosen = self.arguments(_TEMPLATES).get("templateId")
        listed = templates.list_task_templates(principal=principal_of(request), template_id=chosen)
        return json_response(listed)


class ProfileView(ApiView):
    """GET /runtime/profile."""

    scopes = {"GET": "runs:read"}

    @operation(
        "getRuntimeProfile",
        "Limits and trust",
        tag="runs",
        response=openapi.PROFILE,
        refusals=READ_REFUSALS,
    )
    def get(self, request: Request) -> HttpResponse:
        """The limits of this installation, and your trust level."""
        self.arguments(_NOTHING)
        return json_response(runs.get_runtime_profile(principal=principal_of(request)))


class RunsView(ApiView):
    """GET and POST /runs."""

    scopes = {"GET": "runs:read", "POST": "runs:write"}

    @operation(
        "listTaskRuns",
        "Runs of the workspace",
        tag="runs",
        response=openapi.RUN_LIST,
        arguments=_LIST,
        refusals=READ_REFUSALS,
    )
    def get(self, request: Request) -> HttpResponse:
        """Newest first, or in the order of `sort`. `total` counts all that match; with other
        filters than `status` and `templateId`, at most 10000.

        The next page is the same call with `cursor` = `nextCursor`: runs that are submitted in
        between shift no page. With `offset` they do.
        """
        call = self.arguments(_LIST)
        return json_response(list_runs_of_call(principal=principal_of(request), call=call))

    @operation(
        "runTaskTemplate",
        "Submit a run",
        tag="runs",
        response=openapi.SUBMITTED,
        others={202: openapi.SUBMITTED},
        refusals=WRITE_REFUSALS,
        body=openapi.SUBMIT_BODY,
        body_example=openapi.SUBMIT_EXAMPLE,
        examples={200: openapi.ENDED_EXAMPLE, 202: openapi.SUBMITTED_EXAMPLE},
    )
    async def post(self, request: Request) -> HttpResponse:
        """Responds 202 with the handle of a running run (async), or 200 with the ended run (sync).

        With `auto`, the default, the template chooses, and no response takes longer than 55 s. The
        same `idempotencyKey` again responds 200 with the first run and `deduplicated: true`.
        """
        call = await self.arguments_of_body(_SUBMIT)
        message, call["inputs"] = message_of_run(
            principal=principal_of(request),
            session_id=None,  # over REST, a run in a session is no part of the session's task
            template_id=call["templateId"],
            inputs=call["inputs"],
        )
        answer = await submit_and_wait(principal=principal_of(request), call=call, message=message)
        return _handle_of(answer)


def _handle_of(answer: Mapping[str, Any]) -> HttpResponse:
    """Return the response to a submit: 202 with a Location for a new running run, else 200."""
    if answer["deduplicated"] or answer["status"] not in _UNFINISHED:
        return json_response(answer)
    headers = {"Location": f"/api/v1/runs/{answer['runId']}"}
    return json_response(answer, status=HTTPStatus.ACCEPTED, headers=headers)


class RunView(ApiView):
    """GET /runs/{runId}."""

    scopes = {"GET": "runs:read"}

    @operation(
        "getTaskRun",
        "One run",
        tag="runs",
        response=openapi.RUN,
        path=_IN_PATH,
        examples={200: openapi.RUN_EXAMPLE},
        refusals=READ_REFUSALS,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """The run as it is now; `result` and `error` are null until it has ended."""
        run_id = self.arguments(_RUN_ID)["runId"]
        return json_response(runs.get_run(principal=principal_of(request), run_id=run_id))


class WaitView(ApiView):
    """GET /runs/{runId}/wait."""

    scopes = {"GET": "runs:read"}

    @operation(
        "waitTaskRun",
        "Wait for a run's end",
        tag="runs",
        response=openapi.RUN,
        arguments=_WAIT,
        path=_IN_PATH,
        refusals=READ_REFUSALS,
    )
    async def get(self, request: Request, **path: str) -> HttpResponse:
        """The run as soon as it has ended or waits for a person, or as it is after `waitMs`
        (default 55000).
        """
        args = self.arguments(_WAIT)
        wait_s = args.get("waitMs", WAIT_MAX_MS) / 1000
        principal = principal_of(request)
        return json_response(
            await wait_run(principal=principal, run_id=args["runId"], wait_s=wait_s)
        )


class EventsView(ApiView):
    """GET /runs/{runId}/events."""

    scopes = {"GET": "runs:read"}

    @operation(
        "subscribeTaskRunEvents",
        "A run's events",
        tag="runs",
        response=openapi.EVENT_PAGE,
        examples={200: openapi.EVENTS_EXAMPLE},
        arguments=_EVENTS,
        path=_IN_PATH,
        refusals=READ_REFUSALS,
        media_types=("application/json", MEDIA_TYPE),
        others={204: "The stream has nothing more: the run has ended and you have all its events."},
    )
    async def get(self, request: Request, **path: str) -> HttpResponseBase:
        """A page of the events after the seq `after`; with `waitMs` it waits for the next one.

        With `Accept: text/event-stream` the response is a stream that sends each event as it
        happens and ends with the run. Its ids are the events' `seq`: reconnect with `Last-Event-ID`
        and no event is missed or repeated.
        """
        args = self.arguments(_EVENTS)
        principal, run_id = principal_of(request), args["runId"]
        after, limit = args.get("after", 0), args.get("limit", 100)
        if MEDIA_TYPE not in request.headers.get("Accept", "") or request.method == "HEAD":
            wait_s = args.get("waitMs", 0) / 1000
            return json_response(
                await wait_events(
                    principal=principal, run_id=run_id, after=after, wait_s=wait_s, limit=limit
                )
            )
        after = last_event_id(request.headers.get("Last-Event-ID", ""), after)
        first = await wait_events(principal=principal, run_id=run_id, after=after, limit=PAGE)
        if first["terminal"] and not first["events"]:
            return _nothing_more()
        return stream_events(principal=principal, run_id=run_id, first=first)


def _nothing_more() -> HttpResponse:
    """Return 204, which makes a browser's EventSource stop reconnecting."""
    response = HttpResponse(status=HTTPStatus.NO_CONTENT)
    del response["Content-Type"]
    return response


class RunArtifactsView(ApiView):
    """GET /runs/{runId}/artifacts."""

    scopes = {"GET": "artifacts:read"}

    @operation(
        "listRunArtifacts",
        "Artifacts of a run",
        tag="artifacts",
        response=openapi.ARTIFACTS,
        path=_IN_PATH,
        refusals=READ_REFUSALS,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """The whole result first, then the others by creation time. Artifacts outlive their run's
        `runTtlMs`.
        """
        run_id = self.arguments(_RUN_ID)["runId"]
        principal = principal_of(request)
        artifacts = list_run_artifacts(principal=principal, run_id=run_id)
        if not artifacts["artifacts"]:
            visible_run(principal, run_id)  # 404 if there is no such run
        return json_response(artifacts)


class CancelView(ApiView):
    """POST /runs/{runId}/cancel."""

    scopes = {"POST": "runs:write"}

    @operation(
        "cancelTaskRun",
        "Cancel a run",
        tag="runs",
        response=openapi.CHANGED,
        path=_IN_PATH,
        examples={200: openapi.CANCELED_EXAMPLE},
        refusals=WRITE_REFUSALS,
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """The run is canceled at once. A run that had already ended stays as it is, and `success`
        is false.
        """
        run_id = self.arguments(_RUN_ID)["runId"]
        return json_response(cancel.cancel_run(principal=principal_of(request), run_id=run_id))


class RetryView(ApiView):
    """POST /runs/{runId}/retry."""

    scopes = {"POST": "runs:write"}

    @operation(
        "retryTaskRun",
        "Retry a run",
        tag="runs",
        response=openapi.SUBMITTED,
        path=_IN_PATH,
        others={202: openapi.SUBMITTED},
        refusals=(*WRITE_REFUSALS, 409),
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """Submits a failed or canceled run as a new run that takes over the steps that succeeded. A
        repeated request returns the same new run.
        """
        run_id = self.arguments(_RUN_ID)["runId"]
        return _handle_of(retry.retry_run(principal=principal_of(request), run_id=run_id).as_dict())


class AnswerView(ApiView):
    """POST /runs/{runId}/answer."""

    scopes = {"POST": "runs:write"}

    @operation(
        "answerTaskRun",
        "Answer a run's question",
        tag="runs",
        response=openapi.CHANGED,
        path=_IN_PATH,
        body=openapi.ANSWER_BODY,
        refusals=WRITE_REFUSALS,
        body_example={"answer": "Use the second address."},
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """Resumes a run that has `waitingFor.type` = `answer`."""
        args = self.arguments(_ANSWER)
        return json_response(
            answer_run(principal=principal_of(request), run_id=args["runId"], answer=args["answer"])
        )
