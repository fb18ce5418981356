"""Routes of the artifacts, under /api/v1."""

from __future__ import annotations

from django.urls import path

from artifacts import upload_views, views

urlpatterns = [
    path("artifacts/uploads", upload_views.UploadsView.as_view()),
    path("artifacts/uploads/<id:uploadId>/complete", upload_views.CompleteView.as_view()),
    path("artifacts/upload/<id:ticket>", upload_views.DoorView.as_view()),
    path("artifacts/<id:artifactId>", views.ChunkView.as_view()),
    path("artifacts/<id:artifactId>/content", views.ContentView.as_view()),
]
