"""Routes of artifacts and uploads, under /api/v1."""

from __future__ import annotations

from django.urls import path

from artifacts.api import artifacts, files, uploads

urlpatterns = [
    path("artifacts/uploads", uploads.UploadsView.as_view()),
    path("artifacts/uploads/<id:uploadId>/complete", uploads.CompleteView.as_view()),
    path("artifacts/upload/<id:ticket>", uploads.UploadContentView.as_view()),
    path("artifacts/file/<id:ticket>", files.SharedFileView.as_view()),
    path("artifacts/<id:artifactId>", artifacts.ChunkView.as_view()),
    path("artifacts/<id:artifactId>/content", artifacts.ContentView.as_view()),
]
