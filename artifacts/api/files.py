"""The REST view of files that a page in a paired browser is given (browser_upload)."""

from __future__ import annotations

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from artifacts.api.downloads import ByteRange, FileChunks
from artifacts.browser_files import open_shared_file
from decisions.foundation.infra.threads import in_thread
from decisions.rest_base.openapi import operation
from decisions.rest_base.view import PublicView

_BYTES = {"type": "string", "format": "binary"}


class SharedFileView(PublicView):
    """GET /artifacts/file/{ticket}; the ticket is the credential."""

    @operation(
        "downloadSharedFile",
        "A file for a page",
        tag="artifacts",
        response=_BYTES,
        path={"ticket": "The end of the url of a file of browser_upload."},
        media_types=("application/octet-stream",),
        refusals=(404,),
    )
    async def get(self, request: Request, ticket: str) -> HttpResponseBase:
        """The bytes of a file that an action gives to a page in a paired browser; the address
        is valid for 15 minutes.
        """
        size_bytes, file = await in_thread(open_shared_file, ticket)
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Disposition": "attachment",
            "Content-Length": str(size_bytes),
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }
        if request.method == "HEAD":
            file.close()
            return HttpResponse(headers=headers)
        return StreamingHttpResponse(FileChunks(file, ByteRange(0, size_bytes)), headers=headers)
