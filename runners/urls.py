"""Routes of targets, under /api/v1."""

from __future__ import annotations

from django.urls import path

from runners.targets import views

urlpatterns = [
    path("targets", views.TargetsView.as_view()),
    path("targets/<id:targetId>", views.TargetView.as_view()),
    path("targets/<id:targetId>/probe", views.ProbeView.as_view()),
]
