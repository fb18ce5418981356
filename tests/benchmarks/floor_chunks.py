"""The floor of artifact_chunks: Django on uvicorn reads a range of a file and returns it unchanged,
without authentication."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import uvicorn
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import path

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="floor", MIDDLEWARE=[])

import django  # noqa: E402  (configured first)
from django.core.asgi import get_asgi_application  # noqa: E402

django.setup()


def chunk(request: HttpRequest) -> HttpResponse:
    """Answer with a range of the file."""
    with Path(os.environ["FLOOR_FILE"]).open("rb") as file:
        file.seek(int(request.GET["offset"]))
        return HttpResponse(file.read(int(request.GET["limit"])), "application/octet-stream")


urlpatterns = [path("chunk", chunk)]

if __name__ == "__main__":
    uvicorn.run(
        get_asgi_application(),
        port=int(sys.argv[1]),
        loop="uvloop",
        log_level="warning",
        access_log=False,
    )
