"""Routes of targets and paired browsers, under /api/v1."""

from __future__ import annotations

from django.urls import path

from runners.api import paired_browsers, targets

urlpatterns = [
    path("targets", targets.TargetsView.as_view()),
    path("targets/<id:targetId>", targets.TargetView.as_view()),
    path("targets/<id:targetId>/probe", targets.ProbeView.as_view()),
    path("plugin/ticket", paired_browsers.PairingTicketView.as_view()),
    path("plugin/clients", paired_browsers.PairedBrowsersView.as_view()),
    path("plugin/clients/<id:clientId>", paired_browsers.PairedBrowserView.as_view()),
    path("plugin/clients/<id:clientId>/snapshot", paired_browsers.SnapshotView.as_view()),
    path("extension/extension-list", paired_browsers.ExtensionListView.as_view()),
]
