"""REST views of uploads: announce, send the bytes, complete."""

from __future__ import annotations

from http import HTTPStatus

from django.conf import settings
from django.http import HttpResponse
from rest_framework.request import Request

from artifacts import uploads
from artifacts.api import schemas
from artifacts.storage.staging import UPLOAD_PATH, read_ticket
from decisions.rest_base.arguments import RequestArguments
from decisions.rest_base.openapi import component, operation
from decisions.rest_base.view import ApiView, PublicView, json_response, principal_of

_START = RequestArguments(schemas.START_UPLOAD_INPUT)
_UPLOAD_ID = RequestArguments(schemas.UPLOAD_ID_INPUT)
_UPLOAD = component("Upload", schemas.UPLOAD)
_START_BODY = component("StartUpload", schemas.START_UPLOAD_INPUT)
_ARTIFACT = component("Artifact", schemas.ARTIFACT)
_SHA256 = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
_REFUSALS = (400, 401, 403, 409, 413, 415, 429)


class UploadsView(ApiView):
    """POST /artifacts/uploads."""

    scopes = {"POST": "artifacts:write"}

    @operation(
        "startUpload",
        "Announce an upload",
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
        """Returns where to send the bytes: send a request with exactly this `method`, `url` and
        `headers` within an hour. With S3 the bytes go directly to the bucket. Then complete the
        upload.
        """
        arguments = self.arguments(_START)
        upload = uploads.start_upload(
            principal=principal_of(request),
            name=arguments["name"],
            mime_type=arguments["mimeType"],
            size_bytes=arguments["sizeBytes"],
            sha256=arguments["sha256"],
            base_url=_upload_url(request),
        )
        return json_response(upload, status=HTTPStatus.CREATED)


def _upload_url(request: Request) -> str:
    """Return the URL of the upload endpoint: PUBLIC_URL if set, because behind a proxy the request
    has neither the public scheme nor the public host.
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
        "Complete an upload",
        tag="artifacts",
        response=_ARTIFACT,
        path={"uploadId": "From the response of startUpload."},
        refusals=(*_REFUSALS, 404, 410),
    )
    async def post(self, request: Request, **path: str) -> HttpResponse:
        """Verifies the announced size and sha256, and returns the artifact. A repeated call returns
        the same artifact.
        """
        upload_id = (await self.arguments_of_body(_UPLOAD_ID))["uploadId"]
        artifact = await uploads.complete_upload(
            principal=principal_of(request), upload_id=upload_id
        )
        return json_response(artifact)


class UploadContentView(PublicView):
    """PUT /artifacts/upload/{ticket}; the ticket is the credential."""

    @operation(
        "sendUpload",
        "Send the bytes of an upload",
        tag="artifacts",
        response=None,
        path={"ticket": "The end of the url of an upload."},
        others={204: "The bytes are stored."},
        refusals=(400, 404, 409, 413),
    )
    async def put(self, request: Request, ticket: str) -> HttpResponse:
        """Accepts the bytes with the announced size and media type."""
        await uploads.receive_upload(
            ticket=read_ticket(ticket),
            body=request._request,
            mime_type=request.headers.get("Content-Type", ""),
        )
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
