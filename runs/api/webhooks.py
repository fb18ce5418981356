"""Webhooks over REST: create, enable, disable and delete them, and read or repeat deliveries."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpResponse
from rest_framework.request import Request

from decisions.foundation.validation.json_schema import closed
from decisions.rest_base.arguments import RequestArguments
from decisions.rest_base.openapi import READ_REFUSALS, WRITE_REFUSALS, component, operation
from decisions.rest_base.view import ApiView, json_response, principal_of
from runs.api.schemas import webhooks as schemas
from runs.webhooks import services

_NOTHING = RequestArguments(closed({}))
_CREATE = RequestArguments(schemas.CREATE_WEBHOOK_INPUT)
_ONE = RequestArguments(schemas.WEBHOOK_ID_INPUT)
_LIST = RequestArguments(schemas.LIST_DELIVERIES_INPUT)
_DELIVERY = RequestArguments(schemas.DELIVERY_INPUT)
_WEBHOOK_PATH = {"webhookId": "From the response that created the webhook."}
_DELIVERY_PATH = {**_WEBHOOK_PATH, "deliveryId": "From the list of deliveries."}
_WRITE = (*WRITE_REFUSALS, 409)
WEBHOOK = component("Webhook", schemas.WEBHOOK)
DELIVERY = component("WebhookDelivery", schemas.DELIVERY)
_EXAMPLE = {"url": "https://example.com/hooks/continuity", "name": "billing"}


class WebhooksView(ApiView):
    """GET and POST /webhooks."""

    scopes = {"GET": "runs:read", "POST": "runs:write"}

    @operation(
        "listWebhooks",
        "Webhooks of the workspace",
        tag="webhooks",
        response=component("WebhookList", schemas.WEBHOOK_LIST),
        refusals=READ_REFUSALS,
    )
    def get(self, request: Request) -> HttpResponse:
        """Newest first, without their secrets."""
        self.arguments(_NOTHING)
        return json_response(services.list_webhooks(principal=principal_of(request)))

    @operation(
        "createWebhook",
        "Create a webhook",
        tag="webhooks",
        status=201,
        response=component("NewWebhook", schemas.NEW_WEBHOOK),
        body=component("CreateWebhook", schemas.CREATE_WEBHOOK_INPUT),
        body_example=_EXAMPLE,
        refusals=_WRITE,
    )
    def post(self, request: Request) -> HttpResponse:
        """Sends a message to `url` for every run of the workspace that ends from now on, or with
        `everyRun: false` for runs that name the webhook in `options.webhookId`.

        `secret` signs the messages (Standard Webhooks) and is shown only in this response.
        """
        args = self.arguments(_CREATE)
        webhook = services.create_webhook(
            principal=principal_of(request),
            url=args["url"],
            name=args.get("name", ""),
            every_run=args.get("everyRun", True),
            confirmations=args.get("confirmations", False),
            questions=args.get("questions", False),
            confirmation_arguments=args.get("confirmationArguments", False),
        )
        headers = {"Location": f"/api/v1/webhooks/{webhook['webhookId']}"}
        return json_response(webhook, status=HTTPStatus.CREATED, headers=headers)


class WebhookView(ApiView):
    """GET and DELETE /webhooks/{webhookId}."""

    scopes = {"GET": "runs:read", "DELETE": "runs:write"}

    @operation(
        "getWebhook",
        "One webhook",
        tag="webhooks",
        response=WEBHOOK,
        path=_WEBHOOK_PATH,
        refusals=READ_REFUSALS,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """Without its secret."""
        webhook_id = self.arguments(_ONE)["webhookId"]
        return json_response(
            services.get_webhook(principal=principal_of(request), webhook_id=webhook_id)
        )

    @operation(
        "deleteWebhook",
        "Delete a webhook",
        tag="webhooks",
        path=_WEBHOOK_PATH,
        refusals=_WRITE,
        response=component("DeletedWebhook", schemas.DELETED_WEBHOOK),
    )
    def delete(self, request: Request, **path: str) -> HttpResponse:
        """Deletes its deliveries too, including unfinished ones."""
        webhook_id = self.arguments(_ONE)["webhookId"]
        return json_response(
            services.delete_webhook(principal=principal_of(request), webhook_id=webhook_id)
        )


class EnableView(ApiView):
    """POST /webhooks/{webhookId}/enable."""

    scopes = {"POST": "runs:write"}

    @operation(
        "enableWebhook",
        "Enable a webhook",
        tag="webhooks",
        response=WEBHOOK,
        path=_WEBHOOK_PATH,
        refusals=_WRITE,
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """Enables a webhook that was disabled by a request or by a response 410. Deliveries that
        were given up are not sent by themselves: replay them.
        """
        webhook_id = self.arguments(_ONE)["webhookId"]
        return json_response(
            services.enable_webhook(principal=principal_of(request), webhook_id=webhook_id)
        )


class DisableView(ApiView):
    """POST /webhooks/{webhookId}/disable."""

    scopes = {"POST": "runs:write"}

    @operation(
        "disableWebhook",
        "Disable a webhook",
        tag="webhooks",
        response=WEBHOOK,
        path=_WEBHOOK_PATH,
        refusals=_WRITE,
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """No message is sent until it is enabled; unfinished deliveries are given up."""
        webhook_id = self.arguments(_ONE)["webhookId"]
        return json_response(
            services.disable_webhook(principal=principal_of(request), webhook_id=webhook_id)
        )


class DeliveriesView(ApiView):
    """GET /webhooks/{webhookId}/deliveries."""

    scopes = {"GET": "runs:read"}

    @operation(
        "listWebhookDeliveries",
        "Deliveries of a webhook",
        tag="webhooks",
        arguments=_LIST,
        response=component("WebhookDeliveryList", schemas.DELIVERY_LIST),
        path=_WEBHOOK_PATH,
        refusals=READ_REFUSALS,
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """Newest first; the next page starts at `offset` = `nextCursor`."""
        args = self.arguments(_LIST)
        webhook_id = args.pop("webhookId")
        return json_response(
            services.list_deliveries(principal=principal_of(request), webhook_id=webhook_id, **args)
        )


class ReplayView(ApiView):
    """POST /webhooks/{webhookId}/deliveries/{deliveryId}/replay."""

    scopes = {"POST": "runs:write"}

    @operation(
        "replayWebhookDelivery",
        "Send a message again",
        tag="webhooks",
        response=DELIVERY,
        path=_DELIVERY_PATH,
        refusals=_WRITE,
    )
    def post(self, request: Request, **path: str) -> HttpResponse:
        """Starts the delivery again with the same `webhook-id`, whatever its status."""
        args = self.arguments(_DELIVERY)
        return json_response(
            services.replay_delivery(
                principal=principal_of(request),
                webhook_id=args["webhookId"],
                delivery_id=args["deliveryId"],
            )
        )
