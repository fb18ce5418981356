"""Fields of a form that are flagged secret: typed into the page, stored nowhere."""

from __future__ import annotations

import json

from django.forms.models import model_to_dict

from decisions.models import AuditEntry
from runs.models import RunEvent, RunStep
from tests.support.browser.template_sites import RunTemplate, Site, by_text


def test_a_secret_field_reaches_the_site_and_no_row(run_template: RunTemplate, site: Site) -> None:
    secret = {
        "name": "who",
        "value": "canary-8812",
        "locator": by_text("your name"),
        "secret": True,
    }
    run = run_template("submit_and_verify", startUrl=site.url("/contact"), fields=[secret])
    assert run.status == "succeeded", run.error
    assert [sent["name"] for _, sent in site.server.forms] == ["canary-8812"]
    rows = [run, *RunStep.objects.filter(run=run), *RunEvent.objects.filter(run=run)]
    rows += AuditEntry.objects.filter(resource_id=run.id)
    assert "canary-8812" not in json.dumps([model_to_dict(row) for row in rows], default=str)
