"""Artifacts that callers bring, over REST."""

from __future__ import annotations

from http import HTTPStatus

from django.conf import settings
from django.http import HttpResponse
from rest_framework.request import Request

from artifacts import uploads
from artifacts.api import contract
from artifacts.storage.staging import read_ticket
from decisions.api.arguments import RequestArguments
from decisions.api.openapi import component, operation
from decisions.api.view import ApiView, PublicView, json_response, principal_of

UPLOAD_PATH = "/api/v1/artifacts/upload/"
_START = RequestArguments(contract.START_UPLOAD_INPUT)
_UPLOAD_ID = RequestArguments(contract.UPLOAD_ID_INPUT)
_UPLOAD = component("Upload", contract.UPLOAD)
_START_BODY = component("StartUpload", contract.START_UPLOAD_INPUT)
_ARTIFACT = component("Artifact", contract.ARTIFACT)
_SHA256 = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
_REFUSALS = (400, 401, 403, 409, 413, 415, 429)


class UploadsView(ApiView):
    """POST /artifacts/uploads."""

    scopes = {"POST": "artifacts:write"}

    @operation(
        "startUpload",
        "Announce an artifact",
        tag="artifacts",
        response=None,
        body=_START_BODY,
        others={201: _UPLOAD},
        refusals=_REFUSALS,
        body_example={
            "name": "addresses.csv",
            "mimeType": "text/csv",
            "sizeBytes": 3,
            "sha256": _SHA256,
        },
    )
    def post(self, request: Request) -> HttpResponse:
        """Answers where to send the bytes: `method`, `url` and `headers`, as they are, within an
        hour. With S3 they go straight to the bucket. Then complete the upload.
        """
        asked = self.arguments(_START)
        answer = uploads.start_upload(
            principal=principal_of(request),
            name=asked["name"],
            mime_type=asked["mimeType"],
            size_bytes=asked["sizeBytes"],
            sha256=asked["sha256"],
            door=_door(request),
        )
        return json_response(answer, status=HTTPStatus.CREATED)


def _door(request: Request) -> str:
    """Return the address of our door: behind a proxy the request does not tell by which scheme and
    name its caller came.
    """
    return (
        settings.PUBLIC_URL + UPLOAD_PATH
        if settings.PUBLIC_URL
        else request.build_absolute_uri(UPLOAD_PATH)
    )


class CompleteView(ApiView):
    """POST /artifacts/uploads/{uploadId}/complete."""

    scopes = {"POST": "artifacts:write"}

    @operation(
        "completeUpload",
        "Make what was sent an artifact",
        tag="artifacts",
        response=_ARTIFACT,
        path={"uploadId": "From the answer to startUpload."},
        refusals=(*_REFUSALS, 404, 410),
    )
    async def post(self, request: Request, **path: str) -> HttpResponse:
        """Reads the bytes; where size and sha256 are those announced, answers the artifact. Twice
        is the same one.
        """
        upload_id = (await self.arguments_of_body(_UPLOAD_ID))["uploadId"]
        done = uploads.complete_upload(principal=principal_of(request), upload_id=upload_id)
        return json_response(await done)


class UploadContentView(PublicView):
    """PUT /artifacts/upload/{ticket}; the ticket is the credential."""

    @operation(
        "sendUpload",
        "Send an announced artifact",
        tag="artifacts",
        response=None,
        path={"ticket": "The end of the url of an upload."},
        others={204: "They are there."},
        refusals=(400, 404, 409, 413),
    )
    async def put(self, request: Request, ticket: str) -> HttpResponse:
        """Takes the bytes, as many as were announced and of the type that was."""
        await uploads.receive_upload(
            ticket=read_ticket(ticket),
            body=request._request,
            mime_type=request.headers.get("Content-Type", ""),
        )
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
