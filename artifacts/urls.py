"""Routes of the artifacts, under /api/v1."""

from __future__ import annotations

from django.urls import path

from artifacts import views

urlpatterns = [
    path("artifacts/<id:artifactId>", views.ChunkView.as_view()),
    path("artifacts/<id:artifactId>/content", views.ContentView.as_view()),
]
