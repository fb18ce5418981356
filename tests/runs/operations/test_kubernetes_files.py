"""deploy/kubernetes: the manifests are valid, and name what the image and the settings have.
No cluster was tried.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from django.urls import resolve

from decisions.foundation.security.secret_files import SECRETS
from tests.runs.operations.test_deployment_files import METRIC, check_command

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy/kubernetes"
VERSION = "1.34"
OBJECTS = [
    (path.name, one)
    for path in sorted(FOLDER.glob("*.yaml"))
    for one in yaml.safe_load_all(path.read_text())
]


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the specification of each pod with the name of its file."""
    for name, one in OBJECTS:
        if "template" in one["spec"] if "spec" in one else False:
            yield name, one["spec"]["template"]["spec"]


@pytest.mark.parametrize(("name", "one"), OBJECTS, ids=lambda value: str(value)[:40])
def test_each_object_fits_the_schema_of_kubernetes(name: str, one: dict[str, Any]) -> None:
    kubernetes_validate.validate(one, VERSION, strict=True)


def test_the_schema_refuses_a_misspelled_field() -> None:
    (web,) = [one for name, one in OBJECTS if name == "web.yaml" and one["kind"] == "Deployment"]
    misspelled = json.loads(json.dumps(web).replace("readinessProbe", "readynessProbe"))
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(misspelled, VERSION, strict=True)


def test_each_pod_runs_a_command_of_the_image_without_root_and_capabilities() -> None:
    assert {name for name, _ in pods()} >= {"migrate.yaml", "scheduler.yaml", "web.yaml"}
    for _, pod in pods():
        (container,) = pod["containers"]
        check_command(container["args"])
        assert pod["securityContext"]["runAsNonRoot"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not container["securityContext"]["allowPrivilegeEscalation"]


def test_each_probe_asks_a_route_or_a_command_that_exists() -> None:
    asked = []
    for _, pod in pods():
        for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
            probe = pod["containers"][0].get(kind)
            if probe and "httpGet" in probe:
                asked.append(probe["httpGet"]["path"])
                assert resolve(asked[-1])
            elif probe:
                asked.append(" ".join(probe["exec"]["command"][2:]))
                check_command(probe["exec"]["command"][2:])
    assert set(asked) == {"/healthz", "/readyz/web", "probe worker", "probe scheduler"}


def test_web_pauses_before_it_stops_and_the_worker_has_the_profile_of_the_browser() -> None:
    containers = {name: pod["containers"][0] for name, pod in pods()}
    assert containers["web.yaml"]["lifecycle"]["preStop"]["exec"]["command"][0] == "sleep"
    profile = containers["worker.yaml"]["securityContext"]["seccompProfile"]
    assert profile["type"] == "Localhost"
    assert (ROOT / "deploy" / Path(profile["localhostProfile"]).name).exists()


def test_the_configuration_names_variables_of_the_settings_and_no_secret() -> None:
    (configuration,) = [one["data"] for name, one in OBJECTS if name == "configuration.yaml"]
    read = "".join((ROOT / "config" / name).read_text() for name in ("settings.py", "home.py"))
    for name in configuration:
        if name.endswith("_FILE"):
            assert name.removesuffix("_FILE") in SECRETS
        else:
            assert re.search(rf"\b{name}\b", read), name
            assert name not in SECRETS


def test_the_autoscaler_asks_for_a_metric_that_exists() -> None:
    text = (FOLDER / "worker-autoscaler.yaml").read_text()
    assert set(METRIC.findall(text)) == {"continuity_queue_oldest_seconds"}
    assert "continuity_queue_oldest_seconds" in (ROOT / "docs/operations.md").read_text()
