"""Routes of targets and paired browsers, under /api/v1."""

from __future__ import annotations

from django.urls import path

from runners.plugin import views as browsers
from runners.targets import views

urlpatterns = [
    path("targets", views.TargetsView.as_view()),
    path("targets/<id:targetId>", views.TargetView.as_view()),
    path("targets/<id:targetId>/probe", views.ProbeView.as_view()),
    path("plugin/ticket", browsers.PluginTicketView.as_view()),
    path("plugin/clients", browsers.PluginClientsView.as_view()),
    path("plugin/clients/<id:clientId>", browsers.PluginClientView.as_view()),
    path("plugin/clients/<id:clientId>/snapshot", browsers.SnapshotView.as_view()),
    path("extension/extension-list", browsers.ExtensionListView.as_view()),
]
