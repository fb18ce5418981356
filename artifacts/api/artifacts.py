"""REST views of artifacts: chunks (S0 §3.3) and whole downloads."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import IO, Any

from django.conf import settings
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from artifacts import chunks, selectors
from artifacts.api import schemas
from artifacts.api.downloads import ByteRange, FileChunks, RangeOutside, headers_of, parse_range
from artifacts.models import Artifact
from artifacts.storage.blobs import presigned_url
from decisions.foundation.errors import InvalidInput
from decisions.foundation.infra.threads import in_thread
from decisions.rest_base.arguments import RequestArguments
from decisions.rest_base.openapi import component, operation
from decisions.rest_base.view import ApiView, json_response, principal_of

_CHUNK_OF = RequestArguments(schemas.GET_ARTIFACT_INPUT)
_WHOLE = RequestArguments(
    {
        **schemas.GET_ARTIFACT_INPUT,
        "properties": {"artifactId": schemas.GET_ARTIFACT_INPUT["properties"]["artifactId"]},
    }
)
_CHUNK = component("ArtifactChunk", schemas.ARTIFACT_CHUNK)
_EXAMPLE = {
    "artifactId": "art_01kb3x5j2e6s9w1z4b7f0h3k5m",
    "mimeType": "application/json",
    "totalSize": 16,
    "offset": 0,
    "length": 16,
    "data": '{"pages": "two"}',
    "complete": True,
}
_BYTES = {"type": "string", "format": "binary"}
_IN_PATH = {"artifactId": "From a run's artifactIds."}
_REFUSALS = (400, 401, 403, 404, 410, 429)


class RangeNotSatisfiable(InvalidInput):
    """The requested range is outside the artifact."""

    http_status = 416
    recovery = "Request a range that starts before the size in the header Content-Range."


class ChunkView(ApiView):
    """GET /artifacts/{artifactId}."""

    scopes = {"GET": "artifacts:read"}

    @operation(
        "getArtifact",
        "A chunk of an artifact",
        tag="artifacts",
        response=_CHUNK,
        arguments=_CHUNK_OF,
        path=_IN_PATH,
        refusals=_REFUSALS,
        examples={200: _EXAMPLE},
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """Text types are returned as text, cut on whole characters; others as base64. All numbers
        count raw bytes.
        """
        arguments = self.arguments(_CHUNK_OF)
        chunk = chunks.read_chunk(
            principal=principal_of(request), artifact_id=arguments.pop("artifactId"), **arguments
        )
        return json_response(chunk)


class ContentView(ApiView):
    """GET /artifacts/{artifactId}/content."""

    scopes = {"GET": "artifacts:read"}

    @operation(
        "downloadArtifact",
        "A whole artifact",
        tag="artifacts",
        response=_BYTES,
        path=_IN_PATH,
        media_types=("application/octet-stream",),
        refusals=_REFUSALS,
        others={
            206: _BYTES,
            304: "Not modified: If-None-Match has its ETag.",
            307: "Download it from the bucket: follow Location, without the token.",
            416: "The range is outside the artifact.",
        },
    )
    async def get(self, request: Request, **path: str) -> HttpResponseBase:
        """The bytes as an attachment. A single `Range` is supported; the ETag is the sha256."""
        artifact_id = self.arguments(_WHOLE)["artifactId"]
        row, file = await in_thread(
            selectors.open_content, principal=principal_of(request), artifact_id=artifact_id
        )
        headers = headers_of(row)
        if _is_not_modified(request, headers["ETag"]):
            file.close()
            return HttpResponse(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        if location := await asyncio.to_thread(_redirect_url, request, row, headers):
            file.close()
            return HttpResponse(
                status=HTTPStatus.TEMPORARY_REDIRECT,
                headers={"Location": location, "Cache-Control": "no-store"},
            )
        try:
            span = _span(request, row, headers["ETag"])
        except RangeOutside:
            file.close()
            refusal = RangeNotSatisfiable(f"The artifact has {row.size_bytes} bytes.")
            return json_response(
                refusal.as_dict(),
                status=refusal.http_status,
                headers={"Content-Range": f"bytes */{row.size_bytes}"},
            )
        return _download(request, row, file, span, headers)


def _redirect_url(request: Request, row: Artifact, headers: dict[str, str]) -> str | None:
    """Return the storage's URL for downloads of ARTIFACT_REDIRECT_BYTES or more, if it has one."""
    if request.method == "HEAD" or row.size_bytes < settings.ARTIFACT_REDIRECT_BYTES:
        return None
    return presigned_url(row.sha256, disposition=headers["Content-Disposition"])


def _is_not_modified(request: Request, etag: str) -> bool:
    given = request.headers.get("If-None-Match", "").split(",")
    tags = [tag.strip().removeprefix("W/") for tag in given]
    return etag in tags or "*" in tags


def _span(request: Request, row: Artifact, etag: str) -> ByteRange | None:
    """Return the range to send; None for the whole, also if If-Range has another ETag."""
    if request.headers.get("If-Range", etag) != etag or "Range" not in request.headers:
        return None
    return parse_range(request.headers["Range"], row.size_bytes)


def _download(
    request: Request, row: Artifact, file: IO[Any], span: ByteRange | None, headers: dict[str, str]
) -> HttpResponseBase:
    status = HTTPStatus.OK if span is None else HTTPStatus.PARTIAL_CONTENT
    if span is not None:
        headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{row.size_bytes}"
    sent = span or ByteRange(0, row.size_bytes)
    headers["Content-Length"] = str(sent.size_bytes)
    if request.method == "HEAD":
        file.close()
        return HttpResponse(status=status, headers=headers)
    return StreamingHttpResponse(FileChunks(file, sent), status=status, headers=headers)
