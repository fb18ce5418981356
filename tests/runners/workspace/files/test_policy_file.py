"""The policy file in a workspace's root restricts what its owner's settings allow, and never
extends it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.workspace.errors import PathNotFound, PolicyViolation
from runners.workspace.policy_file import effective_policy
from runners.workspace.workspace import WorkspacePolicy

NAME = "continuity.workspace.json"
BASE = WorkspacePolicy(allowed_commands=("dev", "build"), write_requires_diff=False)


def policy_from(folder: Path, policies: Any, **fields: Any) -> WorkspacePolicy:
    (folder / NAME).write_text(json.dumps({"policies": policies, **fields}))
    return effective_policy(BASE, folder)


def test_without_the_file_the_settings_apply_and_our_data_stays_closed(tmp_path: Path) -> None:
    assert effective_policy(BASE, tmp_path).forbidden == (*BASE.forbidden, ".continuity")
    with pytest.raises(PathNotFound):
        effective_policy(BASE, tmp_path / "gone")


def test_the_seeds_example_is_accepted(tmp_path: Path) -> None:
    policy = policy_from(
        tmp_path,
        {
            "sandboxRoot": "${projectRoot}",
            "forbiddenDirs": [".git", "node_modules", ".env"],
            "writeRequiresDiff": True,
            "maxAutoFix": 1,
            "batchMaxLines": 2000,
            "allowedCommands": ["dev", "build", "lint"],
            "browserAllowedHosts": ["localhost", "127.0.0.1"],
        },
        contractVersion="1.0.0",
        mode="cline",
    )
    assert policy.write_requires_diff
    assert policy.allowed_commands == ("dev", "build")  # not `lint`: the settings do not have it


def test_a_later_version_with_the_same_rules_is_accepted(tmp_path: Path) -> None:
    assert (
        policy_from(tmp_path, {"maxReadBytes": 10}, contractVersion="1.0.12").max_read_bytes == 10
    )


def test_each_rule_restricts(tmp_path: Path) -> None:
    policies = {"forbiddenDirs": ["secret"], "maxReadBytes": 10}
    policy = policy_from(
        tmp_path, {**policies, "allowedCommands": [], "browserAllowedHosts": ["localhost"]}
    )
    assert "secret" in policy.forbidden
    assert set(BASE.forbidden) <= set(policy.forbidden)
    assert policy.max_read_bytes == 10
    assert (policy.allowed_commands, policy.allowed_hosts) == ((), ("localhost",))


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "forbiddenDirs": st.lists(st.sampled_from(["a", ".git", "b"])),
            "writeRequiresDiff": st.booleans(),
            "maxReadBytes": st.integers(1, 10**9),
            "maxAutoFix": st.integers(0, 99),
            "batchMaxLines": st.integers(0, 10**6),
            "allowedCommands": st.lists(st.sampled_from(["dev", "rm", "lint"])),
            "browserAllowedHosts": st.lists(st.sampled_from(["localhost", "example.com"])),
        },
    )
)
def test_no_rule_of_the_file_extends_the_settings(
    tmp_path_factory: pytest.TempPathFactory, policies: dict[str, Any]
) -> None:
    policy = policy_from(tmp_path_factory.mktemp("root"), policies)
    assert set(policy.forbidden) >= set(BASE.forbidden)
    assert set(policy.allowed_commands) <= set(BASE.allowed_commands)
    assert set(policy.allowed_hosts) <= set(BASE.allowed_hosts)
    assert policy.write_requires_diff >= BASE.write_requires_diff
    assert policy.max_read_bytes <= BASE.max_read_bytes
    assert policy.developer is BASE.developer


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "7",
        "{}x",
        '{"policies": []}',
        '{"policies": {"forbidenDirs": []}}',
        '{"policies": {"forbiddenDirs": ".git"}}',
        '{"policies": {"forbiddenDirs": ["a/b"]}}',
        '{"policies": {"forbiddenDirs": [""]}}',
        '{"policies": {"maxReadBytes": 0}}',
        '{"policies": {"maxReadBytes": "9"}}',
        '{"policies": {"maxReadBytes": 1.5}}',
        '{"policies": {"writeRequiresDiff": "yes"}}',
        '{"policies": {"sandboxRoot": "/"}}',
        '{"policies": {}, "policies": {}}',
        '{"developer": true}',
        '{"contractVersion": "2.0.0"}',
        '{"contractVersion": "1.1.0"}',
        '{"contractVersion": "1.0"}',
        '{"contractVersion": "1.0.0\\n"}',
        '{"policies": {"maxReadBytes": NaN}}',
        "\ufeff{}",
        "[" * 5000,
        "\x00",
    ],
)
def test_an_invalid_file_disables_the_tools_and_the_reason_is_reported(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(PolicyViolation) as caught:
        effective_policy(BASE, tmp_path)
    assert NAME in caught.value.message
    assert caught.value.hint
    assert str(tmp_path) not in caught.value.message


def test_a_file_that_is_not_a_regular_file_disables_the_tools(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    for make in (
        lambda: (tmp_path / NAME).symlink_to("other.json"),
        lambda: os.mkfifo(tmp_path / NAME),
        lambda: (tmp_path / NAME).write_bytes(b"\xff\xfe"),
        lambda: (tmp_path / NAME).write_text('{"mode": "' + "x" * 70_000 + '"}'),
    ):
        make()
        with pytest.raises(PolicyViolation):
            effective_policy(BASE, tmp_path)
        (tmp_path / NAME).unlink()


@pytest.mark.parametrize("broken", ['{"\\ud800": 1}', '{"\\u0000\\n": 1}'])
def test_an_error_about_invalid_text_in_the_file_is_printable(tmp_path: Path, broken: str) -> None:
    (tmp_path / NAME).write_text(broken)
    with pytest.raises(PolicyViolation) as refused:
        effective_policy(BASE, tmp_path)
    refused.value.message.encode()
    assert refused.value.message.isprintable()


def test_a_long_name_in_the_file_does_not_make_the_error_long(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(json.dumps({"n" * 10_000: 1}))
    with pytest.raises(PolicyViolation) as refused:
        effective_policy(BASE, tmp_path)
    assert len(refused.value.message) < 300
