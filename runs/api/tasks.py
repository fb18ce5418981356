"""Tasks over REST: conversations with the agent, their event logs, and takeovers of the page."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from decisions.foundation.validation.json_schema import page_schema
from decisions.rest_base.arguments import RequestArguments
from decisions.rest_base.openapi import READ_REFUSALS, WRITE_REFUSALS, component, operation
from decisions.rest_base.view import ApiView, json_response, principal_of
from runs.api.schemas import tasks as schemas
from runs.conversations import selectors, services, tickets
from runs.streaming.long_poll import wait_events
from runs.streaming.sse import MEDIA_TYPE, PAGE, last_event_id, stream_events

_MESSAGE = component("TaskMessage", schemas.MESSAGE)
_TASK = component(
    "Task",
    {
        **schemas.TASK,
        "properties": {
            **schemas.TASK["properties"],
            "messages": {"type": "array", "items": _MESSAGE},
        },
    },
)
_LISTED = component("TaskList", page_schema("tasks", _TASK))
_SENT_MESSAGE = component("SentTaskMessage", schemas.SENT_MESSAGE)
_EVENTS = component("TaskEventPage", schemas.EVENT_PAGE)
_TICKET = component("TaskTicket", schemas.TICKET)
_NEW = component("NewTask", schemas.CREATE_INPUT)
_NEW_MESSAGE = component(
    "NewTaskMessage",
    {
        **schemas.MESSAGE_INPUT,
        "properties": {
            name: schema
            for name, schema in schemas.MESSAGE_INPUT["properties"].items()
            if name != "taskId"
        },
        "required": ["content"],
    },
)

_LIST = RequestArguments(schemas.LIST_INPUT)
_CREATE = RequestArguments(schemas.CREATE_INPUT)
_ONE = RequestArguments(schemas.TASK_ID_INPUT)
_GET = RequestArguments(schemas.GET_INPUT)
_MESSAGES = RequestArguments(schemas.MESSAGE_INPUT)
_LOG = RequestArguments(schemas.EVENTS_INPUT)

_IN_PATH = {"taskId": "From the response that created the task."}
_WRITE = (*WRITE_REFUSALS, 409)
_SHOWN = {200: schemas.EXAMPLE}


class TasksView(ApiView):
    """GET and POST /tasks."""

    scopes = {"GET": "tasks:read", "POST": "tasks:write"}

    @operation(
        "listTasks",
        "Tasks of the workspace",
        tag="tasks",
        response=_LISTED,
        arguments=_LIST,
        refusals=READ_REFUSALS,
    )
    def get(self, request: Request) -> HttpResponse:
        """Newest first, without their messages; the next page starts at `offset` = `nextCursor`."""
        args = self.arguments(_LIST)
        return json_response(selectors.list_tasks(principal=principal_of(request), **args))

    @operation(
        "createTask",
        "Create a task",
        tag="tasks",
        response=_TASK,
        status=201,
        body=_NEW,
        body_example=schemas.CREATE_EXAMPLE,
        examples={201: schemas.EXAMPLE},
        others={200: _TASK},
        refusals=_WRITE,
    )
    def post(self, request: Request) -> HttpResponse:
        """A conversation with the agent. With `message` its first run is submitted in the same
        transaction. The same `idempotencyKey` again responds 200 with the first task.
        """
        args = self.arguments(_CREATE)
        task, is_new = services.create_task(
            principal=principal_of(request),
            title=args.get("title"),
            message=args.get("message"),
            target_id=args.get("targetId"),
            selected_client_id=args.get("selectedClientId"),
            output_schema=args.get("outputSchema"),
            key=args.get("idempotencyKey"),
        )
        if not is_new:
            return json_response(task)
        headers = {"Location": f"/api/v1/tasks/{task['taskId']}"}
        return json_response(task, status=HTTPStatus.CREATED, headers=headers)


class TaskView(ApiView):
    """GET /tasks/{taskId}."""

    scopes = {"GET": "tasks:read"}

    @operation(
        "getTask",
        "One task",
        tag="tasks",
        response=_TASK,
        path=_IN_PATH,
        arguments=_GET,
        examples=_SHOWN,
        refusals=READ_REFUSALS,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """Its status, its current run, and its newest messages in order."""
        args = self.arguments(_GET)
        shown = selectors.get_task(
            principal=principal_of(request),
            task_id=args["taskId"],
            messages=args.get("messages", selectors.MESSAGES_SHOWN),
        )
        return json_response(shown)


class MessagesView(ApiView):
    """POST /tasks/{taskId}/messages."""

    scopes = {"POST": "tasks:write"}

    @operation(
        "addTaskMessage",
        "Send a message",
        tag="tasks",
        response=None,
        path=_IN_PATH,
        body=_NEW_MESSAGE,
        body_example=schemas.MESSAGE_EXAMPLE,
        others={202: _SENT_MESSAGE, 200: _SENT_MESSAGE},
        examples={202: schemas.SENT_MESSAGE_EXAMPLE},
        refusals=_WRITE,
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """The message gets a run of the agent, after those of earlier messages; or it answers a run
        that waits for an answer. The same `idempotencyKey` again responds 200 with the first
        message.
        """
        args = self.arguments(_MESSAGES)
        sent = services.add_message(
            principal=principal_of(request),
            task_id=args["taskId"],
            content=args["content"],
            on_busy=args.get("onBusy", "queue"),
            output_schema=args.get("outputSchema"),
            key=args.get("idempotencyKey"),
        )
        status = HTTPStatus.OK if sent["deduplicated"] else HTTPStatus.ACCEPTED
        return json_response(sent, status=status)


class StopView(ApiView):
    """POST /tasks/{taskId}/stop."""

    scopes = {"POST": "tasks:write"}

    @operation(
        "stopTask",
        "Stop a task",
        tag="tasks",
        response=_TASK,
        path=_IN_PATH,
        examples=_SHOWN,
        refusals=_WRITE,
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """Cancels its current run and those that wait; the task stays and accepts new messages."""
        task_id = self.arguments(_ONE)["taskId"]
        return json_response(services.stop_task(principal=principal_of(request), task_id=task_id))


class TakeoverView(ApiView):
    """POST /tasks/{taskId}/takeover."""

    scopes = {"POST": "tasks:write"}

    @operation(
        "takeOverTask",
        "Take over the page",
        tag="tasks",
        response=_TASK,
        path=_IN_PATH,
        examples=_SHOWN,
        refusals=_WRITE,
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """No further tool is called. Once calls in flight have ended, the run is suspended and its
        active time stops. After 30 minutes it fails with RUN_TIMEOUT.
        """
        task_id = self.arguments(_ONE)["taskId"]
        shown = services.take_over_task(principal=principal_of(request), task_id=task_id)
        return json_response(shown)


class ResumeView(ApiView):
    """POST /tasks/{taskId}/resume."""

    scopes = {"POST": "tasks:write"}

    @operation(
        "resumeTask",
        "Give the page back",
        tag="tasks",
        response=_TASK,
        path=_IN_PATH,
        examples=_SHOWN,
        refusals=_WRITE,
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """The suspended run continues, or that of the next message starts."""
        task_id = self.arguments(_ONE)["taskId"]
        return json_response(services.resume_task(principal=principal_of(request), task_id=task_id))


class TicketView(ApiView):
    """POST /tasks/{taskId}/ticket."""

    scopes = {"POST": "tasks:read"}

    @operation(
        "makeTaskTicket",
        "A ticket for the WebSocket",
        tag="tasks",
        response=_TICKET,
        path=_IN_PATH,
        examples={200: schemas.TICKET_EXAMPLE},
        refusals=_WRITE,
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """Valid for one connection to `/ws/tasks/{taskId}` within a minute, with your scopes."""
        task_id = self.arguments(_ONE)["taskId"]
        return json_response(
            tickets.create_ticket(principal=principal_of(request), task_id=task_id)
        )


class TaskEventsView(ApiView):
    """GET /tasks/{taskId}/events."""

    scopes = {"GET": "tasks:read"}

    @operation(
        "subscribeTaskEvents",
        "A task's events",
        tag="tasks",
        response=_EVENTS,
        examples={200: schemas.EVENTS_EXAMPLE},
        arguments=_LOG,
        path=_IN_PATH,
        refusals=READ_REFUSALS,
        media_types=("application/json", MEDIA_TYPE),
    )
    async def get(self, request: Request, **path: str) -> HttpResponseBase:
        """A page of the events after the seq `after`; with `waitMs` it waits for the next one.

        With `Accept: text/event-stream` the response is a stream that sends each event as it
        happens and does not end by itself. Reconnect with `Last-Event-ID` and no event is missed or
        repeated.
        """
        args: dict[str, Any] = self.arguments(_LOG)
        principal, task_id = principal_of(request), args["taskId"]
        after, limit = args.get("after", 0), args.get("limit", 100)
        read = selectors.list_task_events
        if MEDIA_TYPE not in request.headers.get("Accept", "") or request.method == "HEAD":
            page = await wait_events(
                principal=principal,
                run_id=task_id,
                after=after,
                limit=limit,
                wait_s=args.get("waitMs", 0) / 1000,
                read=read,
            )
            return json_response({"events": page["events"], "lastSeq": page["lastSeq"]})
        after = last_event_id(request.headers.get("Last-Event-ID", ""), after)
        first = await wait_events(
            principal=principal, run_id=task_id, after=after, limit=PAGE, wait_s=0, read=read
        )
        first["terminal"] = False  # a task accepts further messages
        return stream_events(principal=principal, run_id=task_id, first=first, read=read)
