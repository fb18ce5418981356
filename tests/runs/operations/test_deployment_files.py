"""Dockerfile, compose.yaml and dashboards: what they refer to exists, and they hold no secrets.
These tests need no Docker engine; docs/operations.md describes the checks that do.
"""

from __future__ import annotations

import json
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.apps import apps
from django.conf import settings
from django.core.management import CommandError, get_commands, load_command_class

ROOT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OWN_SERVICES = {
    name for name, definition in SERVICES.items() if definition["image"].startswith("continuity:")
}
DOCKERFILE = (ROOT / "Dockerfile").read_text()
STEPS = re.findall(r"^([A-Z]+) ((?:.*\\\n)*.*)", DOCKERFILE, re.MULTILINE)
PARTS = {"config", "decisions", "artifacts", "runners", "runs", "mcp_server"}
SECRETS = {
    "CONTINUITY_SECRET_KEYS",
    "POSTGRES_PASSWORD",
    "S3_ACCESS_KEY",
    "S3_SECRET_KEY",
    "CONTINUITY_RUNNER_TOKEN",
}
# Metrics for alerts are in the dashboard or the rules; the other metrics are for diagnosis.
METRIC = re.compile(r"\bcontinuity_[a-z0-9_]+")


def instructions(word: str) -> list[str]:
    return [definition for name, definition in STEPS if name == word]


def environment_of(service: str) -> dict[str, str]:
    environment: dict[str, str] = SERVICES[service].get("environment", {})
    return environment


def check_command(words: list[str]) -> None:
    """Parse a command of manage.py; unknown commands and options are errors."""
    name, *options = words
    assert name in get_commands(), name
    command = load_command_class(get_commands()[name], name)
    command.create_parser("manage.py", name).parse_args(options)


@pytest.mark.parametrize("service", sorted(OWN_SERVICES - {"bucket"}))
def test_every_service_runs_an_existing_management_command(service: str) -> None:
    check_command(SERVICES[service]["command"])


def test_the_image_starts_the_web_server_by_default() -> None:
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["tini", "--", "python", "manage.py"]
    check_command(json.loads(instructions("CMD")[-1]))


def test_the_check_rejects_unknown_commands_and_options() -> None:
    with pytest.raises(AssertionError):
        check_command(["serves"])
    with pytest.raises(CommandError):
        check_command(["serve", "--hosts", "x"])


@pytest.mark.parametrize("service", sorted(OWN_SERVICES))
def test_the_settings_read_every_environment_variable_of_a_service(service: str) -> None:
    read = "".join((ROOT / "config" / name).read_text() for name in ("settings.py", "home.py"))
    read += "CONTINUITY_RUNNER_TOKEN AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY"
    for name in environment_of(service):
        assert re.search(rf"\b{name}\b", read), name


def test_secrets_are_required_and_stored_in_no_file() -> None:
    text = (ROOT / "compose.yaml").read_text()
    for name in SECRETS:
        assert re.search(rf"\$\{{{name}:\?[^}}]+\}}", text), name
        assert not re.search(rf"\$\{{{name}(:?-|\}})", text), name
    assert ".env" in (ROOT / ".gitignore").read_text().split()
    assert not re.search(r"(KEY|TOKEN|PASSWORD|SECRET)\w*=", DOCKERFILE)


def test_the_runner_has_no_other_secrets_and_no_network_to_the_stores() -> None:
    runner = SERVICES["docker-runner"]
    assert set(runner["environment"]) == {"CONTINUITY_RUNNER_TOKEN"}
    assert set(runner["networks"]) == {"runners"}
    for store in ("postgres", "redis", "s3"):
        assert "runners" not in SERVICES[store]["networks"]
    address = runner["networks"]["runners"]["ipv4_address"]
    assert f":-{address}:18081}}" in environment_of("worker")["CONTINUITY_EGRESS_ALLOW"]


def test_only_the_proxy_publishes_ports_so_every_other_part_can_be_scaled() -> None:
    published = {name: one["ports"] for name, one in SERVICES.items() if "ports" in one}
    assert published == {"proxy": ["80:8080", "443:8443"]}


def test_limits_are_in_the_one_form_that_compose_2_accepts_beside_pids_limit() -> None:
    for definition in SERVICES.values():
        assert "resources" not in definition.get("deploy", {})
    assert {name for name in SERVICES if "mem_limit" in SERVICES[name]} == {
        "docker-runner",
        "worker",
    }


def test_the_proxy_starts_without_waiting_for_a_health_check_of_the_web_server() -> None:
    assert SERVICES["proxy"]["depends_on"] == ["web"]


def test_nginx_finds_its_configuration_also_to_load_a_renewed_certificate() -> None:
    dockerfile = (ROOT / "deploy/proxy/Dockerfile").read_text()
    assert "COPY nginx.conf /etc/nginx/nginx.conf" in dockerfile
    assert '"-c"' not in dockerfile
    assert "nginx -s reload" in (ROOT / "docs/operations.md").read_text()


def test_callers_reach_the_store_by_the_address_of_the_proxy() -> None:
    storage = environment_of("web")["CONTINUITY_ARTIFACT_STORAGE"]
    assert storage.endswith("&public_endpoint=${S3_PUBLIC_URL:-${CONTINUITY_PUBLIC_URL}}")
    bucket = storage.removeprefix("s3://").partition("?")[0]
    assert f"location /{bucket}/ {{" in (ROOT / "deploy/proxy/nginx.conf").read_text()


def test_no_service_leaves_a_volume_without_a_name_behind() -> None:
    assert not instructions("VOLUME")
    assert SERVICES["redis"]["tmpfs"] == ["/data"]  # a volume of the official image


def test_the_web_server_trusts_the_proxy_alone() -> None:
    proxy = SERVICES["proxy"]
    address = proxy["networks"]["edge"]["ipv4_address"]
    assert environment_of("web")["CONTINUITY_TRUSTED_PROXIES"] == address
    on_its_network = {name for name in SERVICES if "edge" in SERVICES[name]["networks"]}
    assert on_its_network == {"proxy", "web"}
    assert set(proxy["networks"]) == {"edge", "store"}
    assert {name for name in SERVICES if "store" in SERVICES[name]["networks"]} == {"proxy", "s3"}


def test_the_image_runs_as_a_non_root_user_with_the_needed_packages() -> None:
    assert instructions("USER") == ["continuity"]
    assert STEPS.index(("USER", "continuity")) > max(
        number for number, (name, _) in enumerate(STEPS) if name == "RUN"
    )
    installed = " ".join(instructions("RUN"))
    for package in (
        "chromium-headless-shell",
        "fontconfig",
        "fonts-wqy-microhei",
        "tini",
        "bubblewrap",
        "libpq5",
        "libatomic1",
    ):
        assert package in installed
    assert "--no-sandbox" not in DOCKERFILE


def folders_of_settings() -> list[Path]:
    """Return the folders that settings name beside those of packages."""
    engines: list[dict[str, Any]] = settings.TEMPLATES
    of_templates = [folder for engine in engines for folder in engine["DIRS"]]
    of_files = [*settings.STATICFILES_DIRS, *settings.FIXTURE_DIRS]
    return [Path(folder) for folder in (*settings.LOCALE_PATHS, *of_templates, *of_files)]


def test_the_image_contains_every_part_what_settings_name_and_no_other_files() -> None:
    copied = {
        name
        for definition in instructions("COPY")
        if "--from" not in definition
        for name in definition.split()[:-1]
    }
    own = [Path(app.path) for app in apps.get_app_configs() if Path(app.path).parent == ROOT]
    named = {path.relative_to(ROOT).parts[0] for path in (*own, *folders_of_settings())}
    assert copied == PARTS | named | {"manage.py", "requirements.lock"}
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    ignored = [line for line in lines if line and line[0] != "#"]
    assert ignored[0] == "*"
    assert {line[1:] for line in ignored if line[0] == "!"} == copied
    assert "**/.env" in ignored


def test_the_builder_gets_each_file_of_the_folders_that_settings_name() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    excluded = [line.removeprefix("**/") for line in lines if line.startswith("**/")]
    files = [file for folder in folders_of_settings() for file in folder.rglob("*.*")]
    assert {".mo", ".html"} <= {file.suffix for file in files}
    kept = [name for name in excluded if any(fnmatch(file.name, name) for file in files)]
    assert kept == []


def test_the_dockerfile_names_no_package_index() -> None:
    assert "://" not in DOCKERFILE.replace("http.client", "")
    assert "--require-hashes" in DOCKERFILE


@pytest.mark.parametrize(
    ("service", "needed"),
    [
        ("worker", {"clone", "clone3", "unshare", "setns", "chroot", "ptrace"}),
        ("docker-runner", {"clone", "unshare", "mount", "umount2", "pivot_root", "setns"}),
    ],
)
def test_the_seccomp_profiles_allow_sandboxes_and_deny_kernel_calls(
    service: str, needed: set[str]
) -> None:
    options = SERVICES[service]["security_opt"]
    path = next(option.partition("=")[2] for option in options if option.startswith("seccomp="))
    profile = json.loads((ROOT / path).read_text())
    denied = {name for rule in profile["syscalls"] for name in rule["names"]}
    assert profile["defaultAction"] == "SCMP_ACT_ALLOW"
    assert {rule["action"] for rule in profile["syscalls"]} == {"SCMP_ACT_ERRNO"}
    assert not needed & denied
    assert {"bpf", "init_module", "kexec_load", "open_by_handle_at", "keyctl", "reboot"} <= denied
    assert "no-new-privileges:true" in options
    assert SERVICES[service]["cap_drop"] == ["ALL"]


@pytest.mark.parametrize("service", sorted(set(SERVICES) - OWN_SERVICES))
def test_services_of_other_programs_write_no_core_dumps(service: str) -> None:
    assert SERVICES[service]["ulimits"] == {"core": 1}


def expressions() -> list[str]:
    """Return every PromQL expression of the dashboard and the alert rules."""
    board = json.loads((ROOT / "docs/dashboards/continuity.json").read_text())
    panel_expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    rules = yaml.safe_load((ROOT / "docs/dashboards/alerts.yaml").read_text())
    return panel_expressions + [
        rule["expr"] for group in rules["groups"] for rule in group["rules"]
    ]


def test_dashboard_panels_do_not_overlap() -> None:
    panels = json.loads((ROOT / "docs/dashboards/continuity.json").read_text())["panels"]
    cells = {
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    }
    area = sum(panel["gridPos"]["w"] * panel["gridPos"]["h"] for panel in panels)
    assert len(cells) == area
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)
