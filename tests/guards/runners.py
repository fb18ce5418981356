"""Guards of `runners`: workspace tools, targets, the gateway of runners, docker-runner, the
network, the browser, and the invocation of tools.
"""

from __future__ import annotations

from tests.guards import own_browser
from tests.guards.guard import Guard, Patch, Sql

_READING = "tests/runners/workspace/files/test_reading_tools.py"
_WRITING = "tests/runners/workspace/writing/test_write_text.py"
_CONFLICTS = "tests/runners/workspace/writing/test_write_conflicts.py"
_SNAPSHOTS = "tests/runners/workspace/writing/test_snapshots.py"
_SEARCH = "tests/runners/workspace/search/test_search.py"
_PROFILE = "tests/runners/workspace/tools/test_generate_character_profile.py"
_RESTORE = "tests/runners/admin/test_snapshots.py"
_COMMAND = "tests/runners/workspace/scripts/test_execute_command.py"
_DEV_SCRIPT = "tests/runners/workspace/preview/test_dev_script.py"
_PREVIEW = "tests/runners/workspace/preview/test_preview_scene.py"
_LOCAL_PAGES = "tests/runners/workspace/tools/test_browser_action.py"
_TOOL_CALLS = "tests/runs/direct_calls/test_tool_calls.py"
_WORKSPACES = "tests/runners/targets/test_workspaces.py"
_ROOTS = "tests/runners/targets/test_roots_of_others.py"
_RUNNER_TARGETS = "tests/runners/targets/test_runner_targets.py"
_REST_TARGETS = "tests/runners/targets/test_targets_over_rest.py"
_OFFERED_TOOLS = "tests/runners/targets/test_published_tools.py"
_MCP_TARGETS = "tests/contract/test_mcp_targets.py"
_RUNNER_CALLS = "tests/runners/gateway/test_calls.py"
_FALLBACK = "tests/runners/invocation/test_fallback.py"
_GATEWAY_CALLS = "tests/runners/gateway/test_protocol.py"
_GATEWAY_REACH = "tests/runners/gateway/test_allowed_addresses.py"
_GATEWAY_FAILURES = "tests/runners/gateway/test_misbehaving_runners.py"
_RUNNER_PROTOCOL = "tests/e2e/test_docker_runner_protocol.py"
_RUNNER_START = "tests/e2e/test_docker_runner_start.py"
_RUNNER_TOOLS = "tests/e2e/test_docker_runner_tools.py"
_RUNNER_ANSWERS = "tests/runners/docker_runner/test_answers.py"
_HTTP_REQUEST = "tests/runners/docker_runner/test_http_request.py"
_BUBBLEWRAP = "tests/runners/docker_runner/test_bubblewrap.py"
_EGRESS = "tests/runners/network/test_blocked_addresses.py"
_EGRESS_REQUESTS = "tests/runners/network/test_request_techniques.py"
_PROXY = "tests/runners/network/test_proxy.py"
_BROWSER_SESSION = "tests/runners/browser/session/test_session.py"
_DOCUMENTS = "tests/runners/browser/interaction/test_documents.py"
_HOSTILE_PAGES = "tests/runners/browser/session/test_hostile_pages.py"
_ELEMENTS = "tests/runners/browser/interaction/test_elements.py"
_FILLING = "tests/runners/browser/interaction/test_fill_field.py"
_PRESSING = "tests/runners/browser/interaction/test_click_and_submit.py"
_FAILURE_PICTURES = "tests/runs/execution/test_failure_screenshots.py"
_TRACES = "tests/runners/browser/tracing/test_traces.py"
_SESSIONS = "tests/runs/sessions/test_sessions.py"
_TASK_TABS = "tests/runners/browser/actions/test_task_tab.py"
_NAVIGATING_PAGES = "tests/runners/browser/actions/test_navigation_during_action.py"
_DOWNLOADS = "tests/runners/browser/actions/test_downloads.py"
_GO_BACK = "tests/runners/browser/actions/test_go_back.py"
_DRAGGING = "tests/runners/browser/actions/test_drag.py"
_ACTION_CATALOGUE = "tests/runners/actions/test_catalogue.py"
_OPENED_TABS = "tests/runners/browser/actions/test_tabs.py"
_ELEMENT_INDEX = "tests/runners/browser/actions/test_dom_index.py"
_OBSERVE = "tests/runners/browser/actions/test_observe.py"
_ACTION_PAGES = "tests/runners/browser/actions/test_reading_actions.py"
_INPUT_LOST = "tests/runners/browser/actions/test_lost_input_session.py"
_ACTIONS_NOT_LISTED = "tests/runners/browser/actions/test_hidden_from_apis.py"
_TAKEOVER_INPUT = "tests/runners/browser/live/test_person_input.py"
_TAKEOVER_END = "tests/runs/live/test_input_at_release.py"
_BROWSER_HOME = "tests/runners/browser/pool/test_temp_home.py"
_INTERRUPTED = "tests/runners/workspace/writing/test_interrupted_writes.py"
_STEP_CALLS = "tests/runs/task_templates/test_call_tools.py"

_FORBIDDEN_WRITE = f"{_WRITING}::test_a_forbidden_write_is_not_previewed_either"

_PATHS = (
    Guard(
        "path-dot-dot",
        "A path with `..` is refused, also where it stays inside of the workspace",
        Patch("runners/workspace/files/paths.py", 'if not part.strip(". "):', "if False:"),
        failing_test=f"{_PROFILE}::test_the_image_must_be_a_file_in_the_figure_folder"
        "[../bgm/title.wav-PathDenied]",
    ),
    Guard(
        "path-absolute",
        "An absolute path is refused",
        Patch("runners/workspace/files/paths.py", 'if path.startswith("/"):', "if False:"),
        failing_test=f"{_FORBIDDEN_WRITE}[True-/etc/x-PathDenied]",
    ),
    Guard(
        "path-forbidden-name",
        "A path with a forbidden name is refused",
        Patch("runners/workspace/files/paths.py", "if forbidden.matches(part):", "if False:"),
        failing_test=f"{_FORBIDDEN_WRITE}[True-.git/config-PathDenied]",
    ),
    Guard(
        "path-forbidden-names-not-listed",
        "A list of a folder has no forbidden name",
        Patch(
            "runners/workspace/files/listing.py",
            "return Found(forbidden.allowed(files), forbidden.allowed(folders))",
            "return Found(files, folders)",
        ),
        failing_test=f"{_READING}::test_a_list_has_one_level_without_globs_and_the_depth_of_the_globs"
        "_with_them",
    ),
    Guard(
        "glob-dot-dot",
        "A glob that leads out of its folder is refused",
        Patch("runners/workspace/files/globs.py", 'if ".." in glob.split("/"):', "if False:"),
        failing_test=f"{_READING}::test_an_impossible_list_is_refused_with_a_hint[.-globs2-PathDenied]",
    ),
    Guard(
        "links-out-of-the-workspace",
        "A link that leads out of the workspace is not followed",
        Patch(
            "runners/workspace/files/safe_open.py",
            "_OpenHow(flags | os.O_CLOEXEC, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)",
            "_OpenHow(flags | os.O_CLOEXEC, 0, 0)",
        ),
        failing_test=f"{_FORBIDDEN_WRITE}[True-link/x.txt-PathDenied]",
    ),
    Guard(
        "links-inside-of-the-workspace",
        "A link to a forbidden folder of the same workspace is not followed",
        Patch(
            "runners/workspace/files/safe_open.py",
            "_BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)",
            "_BENEATH)",
        ),
        failing_test=f"{_READING}::test_a_link_to_a_forbidden_folder_is_not_followed[at once]",
    ),
    Guard(
        "links-without-openat2",
        "Links are not followed on kernels without openat2 either",
        Patch(
            "runners/workspace/files/safe_open.py",
            "flags | os.O_NOFOLLOW | os.O_CLOEXEC",
            "flags | os.O_CLOEXEC",
        ),
        failing_test=f"{_READING}::test_a_link_to_a_forbidden_folder_is_not_followed[step by step]",
    ),
    Guard(
        "file-type-after-opening",
        "A file that becomes a pipe between the check and the opening is not read",
        Patch(
            "runners/workspace/files/sandbox.py",
            "            require_regular_file(info, path)\n            data =",
            "            data =",
        ),
        failing_test=f"{_READING}::test_a_file_that_becomes_a_pipe_after_its_check_is_not_read",
    ),
    Guard(
        "searched-links",
        "A search reads no file that a link names",
        (
            Patch(
                "runners/workspace/files/listing.py",
                "if entry.is_file(follow_symlinks=False):",
                "if entry.is_file():",
            ),
            Patch(
                "runners/workspace/files/read_whole.py",
                "flags = READ_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC",
                "flags = READ_FLAGS | os.O_CLOEXEC",
            ),
        ),
        failing_test=f"{_SEARCH}::test_binary_large_forbidden_and_linked_files_are_not_searched",
    ),
    Guard(
        "read-size",
        "A file above the limit is not read",
        Patch(
            "runners/workspace/files/sandbox.py",
            "read_descriptor(found, info.st_size, limit) if info.st_size <= limit else None",
            "read_descriptor(found, info.st_size, info.st_size)",
        ),
        failing_test=f"{_READING}::test_a_caller_may_lower_the_limit_and_never_raise_it",
    ),
    Guard(
        "read-size-of-the-workspace",
        "A caller cannot raise the workspace's limit for reads",
        Patch(
            "runners/workspace/tools/read_file.py",
            "limit = min(workspace.policy.max_read_bytes, args.max_bytes or",
            "limit = (args.max_bytes or",
        ),
        failing_test=f"{_READING}::test_a_caller_may_lower_the_limit_and_never_raise_it",
    ),
    Guard(
        "search-size",
        "A search reads no file above the limit",
        Patch(
            "runners/workspace/files/read_whole.py",
            "if size > limit or not stat.S_ISREG(info.st_mode):",
            "limit = max(size, limit)\n            if not stat.S_ISREG(info.st_mode):",
        ),
        failing_test=f"{_SEARCH}::test_binary_large_forbidden_and_linked_files_are_not_searched",
    ),
    Guard(
        "profile-name",
        "The name of a character cannot lead into another folder",
        Patch(
            "runners/workspace/tools/generate_character_profile.py",
            'if "/" in name or "\\\\" in name or name.startswith("."):',
            "if False:",
        ),
        failing_test=f"{_PROFILE}::test_a_name_must_be_a_valid_file_name[a/b-PathDenied]",
    ),
    Guard(
        "profile-of-another-kind",
        "A file that is not a character's definition is not replaced by one",
        Patch(
            "runners/workspace/tools/generate_character_profile.py",
            "        current = None\n",
            "        current = {}\n",
        ),
        failing_test=f"{_PROFILE}::test_a_file_that_is_not_a_definition_is_not_overwritten[not json]",
    ),
)

_WRITES = (
    Guard(
        "hard-link-preview",
        "A write to a file with a second hard link is not even previewed",
        Patch(
            "runners/workspace/writing/write_text.py",
            "if ancestor == name and info.st_nlink > 1:",
            "if False:",
        ),
        failing_test=f"{_FORBIDDEN_WRITE}[True-twice.txt-PathDenied]",
    ),
    Guard(
        "hard-link-replacement",
        "A file with a second hard link is not replaced, whatever tool writes it",
        Patch("runners/workspace/files/atomic_replace.py", "if info.st_nlink > 1:", "if False:"),
        failing_test=f"{_RUNNER_TOOLS}::test_hard_links_and_policy_files_are_not_written[twice]",
    ),
    Guard(
        "policy-file-preview",
        "No tool previews a write to a policy file",
        Patch(
            "runners/workspace/writing/write_text.py",
            'if is_policy_file(tuple(name.split("/"))):',
            "if False:",
        ),
        failing_test=f"{_FORBIDDEN_WRITE}[True-below/continuity.workspace.json-PathDenied]",
    ),
    Guard(
        "policy-file-replacement",
        "A policy file is not replaced, whatever tool writes it",
        Patch("runners/workspace/files/sandbox.py", "if is_policy_file(parts):", "if False:"),
        failing_test=f"{_RUNNER_TOOLS}::test_hard_links_and_policy_files_are_not_written"
        "[continuity.workspace.json]",
    ),
    Guard(
        "write-size",
        "A file above the limit is not written",
        Patch("runners/workspace/writing/write_text.py", "    if size > limit:", "    if False:"),
        failing_test=f"{_WRITING}::test_only_text_within_the_size_limit_is_written",
    ),
    Guard(
        "write-needs-a-preview",
        "A write that was not previewed is refused",
        Patch("runners/workspace/writing/write_text.py", "if require_preview:", "if False:"),
        failing_test=f"{_WRITING}::test_a_write_without_a_preview_is_refused",
    ),
    Guard(
        "preview-of-another-caller",
        "The preview of one caller does not permit the write of another",
        Patch(
            "runners/workspace/writing/previews.py",
            "parts = [self.principal_id, self.path,",
            'parts = ["", self.path,',
        ),
        failing_test=f"{_WRITING}::test_a_write_without_a_preview_is_refused",
    ),
    Guard(
        "preview-of-other-content",
        "A preview permits the write of the content that it showed and of no other",
        Patch(
            "runners/workspace/writing/previews.py",
            "self.mode, hashlib.sha256(self.data).hexdigest()]",
            "self.mode]",
        ),
        failing_test=f"{_WRITING}::test_a_write_without_a_preview_is_refused",
    ),
    Guard(
        "preview-of-an-earlier-file",
        "A file that changed after the preview is not written",
        Patch(
            "runners/workspace/writing/previews.py",
            'over = "absent" if base is None else hashlib.sha256(base).hexdigest()[:24]',
            'over = "any"',
        ),
        failing_test=f"{_WRITING}::test_a_file_that_changed_after_its_preview_is_not_written[other content]",
    ),
    Guard(
        "preview-expires",
        "A preview permits its write for 15 minutes",
        Patch(
            "runners/workspace/writing/previews.py",
            "    delete_expired_previews(state)\n    if (folder",
            "    if (folder",
        ),
        failing_test=f"{_WRITING}::test_a_preview_expires_after_15_minutes",
    ),
    Guard(
        "write-key-done-once",
        "A repeated write with the same key is not done again",
        Patch(
            "runners/workspace/writing/write_text.py",
            "(before := keyed.find_done()) is not None:",
            "(before := None) is not None:",
        ),
        failing_test=f"{_WRITING}::test_a_key_writes_once_and_then_returns_the_same_answer",
    ),
    Guard(
        "write-key-compares-content",
        "A key that was used for another write is a conflict",
        Patch(
            "runners/workspace/writing/idempotency_keys.py",
            "if digest != self.write.digest():",
            "if False:",
        ),
        failing_test=f"{_WRITING}::test_a_key_used_for_another_write_is_a_conflict",
    ),
    Guard(
        "write-key-of-its-caller",
        "The key of one caller does not collide with that of another",
        Patch(
            "runners/workspace/writing/idempotency_keys.py",
            "scope = json.dumps([self.write.principal_id, self.write.path, self.key])",
            "scope = json.dumps([self.write.path, self.key])",
        ),
        failing_test=f"{_WRITING}::test_a_key_used_for_another_write_is_a_conflict",
    ),
    Guard(
        "one-writer-a-file",
        "Two writers do not write the same file at once",
        Patch("runners/workspace/writing/file_lock.py", "fcntl.LOCK_EX |", "fcntl.LOCK_SH |"),
        failing_test=f"{_WRITING}::test_a_write_waits_for_another_writer_and_then_reports_it",
    ),
    Guard(
        "change-during-the-write",
        "A file that another program changes during a write is not replaced",
        Patch(
            "runners/workspace/files/atomic_replace.py",
            "        _check_target(folder, name, path, expect)\n        _put(",
            "        _put(",
        ),
        failing_test=f"{_CONFLICTS}::test_a_file_that_another_writes_during_the_write_stays",
    ),
    Guard(
        "new-file-replaces-none",
        "A new file does not replace one that was created at the last moment",
        Patch("runners/workspace/files/atomic_replace.py", "    if is_new:", "    if False:"),
        failing_test=f"{_CONFLICTS}::test_a_new_file_does_not_replace_one_created_at_the_last_moment",
    ),
    Guard(
        "content-on-disk-before-the-rename",
        "A file's new content is on disk before it replaces the old",
        Patch("runners/workspace/files/atomic_replace.py", "os.fsync(new)", "os.fstat(new)"),
        failing_test=f"{_CONFLICTS}::test_the_new_content_is_on_disk_before_it_replaces_the_old",
    ),
    Guard(
        "failed-write-undone",
        "A failed write leaves neither a snapshot nor a result under its key",
        Patch(
            "runners/workspace/writing/write_text.py",
            "            finish_or_undo(state, pending, is_own_write=True)\n",
            "",
        ),
        failing_test=f"{_CONFLICTS}::test_a_failed_write_is_not_answered_as_done_under_its_key[new-third]",
    ),
    Guard(
        "pending-write-recorded",
        "A write is recorded on disk before it begins, so that a crash can be recovered",
        Patch(
            "runners/workspace/writing/write_text.py",
            "            self.lock.write_record(pending.as_record())\n",
            "",
        ),
        failing_test=f"{_CONFLICTS}::test_the_note_of_a_write_is_on_disk_before_the_snapshot",
    ),
    Guard(
        "canceled-preview-permits-nothing",
        "A preview that its caller did not receive does not permit the write",
        Patch(
            "runners/workspace/tools/write_to_file.py",
            "        compute_preview, workspace, args.path, args.content, mode=args.mode\n    )",
            "        lambda: (p := compute_preview(\n"
            "            workspace, args.path, args.content, mode=args.mode\n"
            "        ), p.record())[0]\n    )",
        ),
        failing_test=f"{_INTERRUPTED}::test_a_preview_that_timed_out_does_not_permit_the_write",
    ),
    Guard(
        "snapshot-forbidden-later",
        "The snapshot of a file that is forbidden now is not returned",
        Patch(
            "runners/workspace/writing/snapshots.py",
            "if not is_path_allowed(found.path, forbidden):",
            "if False:",
        ),
        failing_test=f"{_SNAPSHOTS}::test_a_file_that_was_forbidden_later_is_neither_listed_nor_returned",
    ),
    Guard(
        "snapshot-forbidden-later-not-listed",
        "The snapshots of a file that is forbidden now are not listed",
        Patch(
            "runners/workspace/writing/snapshots.py",
            "            and is_path_allowed(snapshot.path, forbidden)\n",
            "",
        ),
        failing_test=f"{_SNAPSHOTS}::test_a_file_that_was_forbidden_later_is_neither_listed_nor_returned",
    ),
    Guard(
        "snapshot-hash",
        "A snapshot whose content was changed is not returned",
        Patch(
            "runners/workspace/writing/snapshots.py",
            "if not hashlib.sha256(content).hexdigest().startswith(found.content_hash):",
            "if False:",
        ),
        failing_test=f"{_SNAPSHOTS}::test_a_changed_content_is_reported[y]",
    ),
    Guard(
        "restore-needs-a-preview",
        "An operator restores a file only after a preview of the current one",
        Patch(
            "runners/targets/snapshots.py",
            "write_text(workspace, snapshot.path, then, require_preview=True)",
            "write_text(workspace, snapshot.path, then)",
        ),
        failing_test=f"{_RESTORE}::test_without_a_preview_of_the_current_file_nothing_is_written[False]",
    ),
    Guard(
        "restore-policy",
        "Policy is evaluated before a file is restored",
        Patch("runners/targets/snapshots.py", "approval = admit_call(request)", "approval = None"),
        failing_test=f"{_RESTORE}::test_policy_can_deny_a_restore_and_an_operator_needs_no_confirmation[deny]",
    ),
)

_POLICY_FILE_TEST = f"{_TOOL_CALLS}::test_the_policy_file_restricts_and_extends_nothing"

_WORKSPACE_POLICY = (
    Guard(
        "invalid-policy-file",
        "An invalid policy file disables every tool but the one that reports it",
        Patch(
            "runners/targets/workspaces.py",
            "        if not is_reported:\n            raise\n",
            "",
        ),
        failing_test=f"{_TOOL_CALLS}::test_an_invalid_policy_file_is_reported_and_every_other_tool_fails[rest]",
    ),
    Guard(
        "unknown-policy-key",
        "A misspelled rule in a policy file is an error and not ignored",
        Patch(
            "runners/workspace/policy_file.py",
            'class _Policies(BaseModel):\n    model_config = ConfigDict(extra="forbid")',
            'class _Policies(BaseModel):\n    model_config = ConfigDict(extra="ignore")',
        ),
        failing_test=f"{_TOOL_CALLS}::test_an_invalid_policy_file_is_reported_and_every_other_tool_fails[rest]",
    ),
    Guard(
        "policy-file-forbids",
        "A policy file forbids further names",
        Patch(
            "runners/workspace/policy_file.py",
            "forbidden=_union(base.forbidden, policies.forbiddenDirs),",
            "forbidden=base.forbidden,",
        ),
        failing_test=f"{_POLICY_FILE_TEST}[adds a name]",
    ),
    Guard(
        "policy-file-allows-no-name",
        "A policy file allows no name that the settings forbid",
        Patch(
            "runners/workspace/policy_file.py",
            "forbidden=_union(base.forbidden, policies.forbiddenDirs),",
            "forbidden=tuple(policies.forbiddenDirs),",
        ),
        failing_test=f"{_POLICY_FILE_TEST}[removes no name]",
    ),
    Guard(
        "policy-file-read-size",
        "A policy file lowers the limit for reads and never raises it",
        Patch(
            "runners/workspace/policy_file.py",
            "limit if own_limit is None else min(limit, own_limit)",
            "limit if own_limit is None else own_limit",
        ),
        failing_test=f"{_POLICY_FILE_TEST}[raises no size]",
    ),
    Guard(
        "policy-file-preview-rule",
        "A policy file cannot switch off that a write needs a preview",
        Patch(
            "runners/workspace/policy_file.py",
            "base.write_requires_diff or policies.writeRequiresDiff",
            "policies.writeRequiresDiff",
        ),
        failing_test=f"{_POLICY_FILE_TEST}[keeps previews]",
    ),
    Guard(
        "policy-file-commands",
        "A policy file removes scripts from those that the settings allow and adds none",
        Patch(
            "runners/workspace/policy_file.py",
            "names if allowed is None else tuple(name for name in names if name in allowed)",
            "names if allowed is None else tuple(allowed)",
        ),
        failing_test=f"{_POLICY_FILE_TEST}[adds no script]",
    ),
    Guard(
        "data-folder-of-a-workspace",
        "The data folder of an installation is forbidden in every workspace, by its default name",
        Patch(
            "runners/workspace/policy_file.py",
            "defaults = replace(base, forbidden=_union(base.forbidden, (DATA_DIRECTORY,)))",
            "defaults = base",
        ),
        failing_test=f"{_TOOL_CALLS}::test_the_data_folder_of_an_installation_is_forbidden[rest]",
    ),
    Guard(
        "own-home-in-a-workspace",
        "This installation's own home is forbidden in a workspace that contains it",
        Patch("runners/targets/workspaces.py", "if home.is_relative_to(root):", "if False:"),
        failing_test=f"{_WORKSPACES}::test_a_home_of_any_name_is_forbidden_inside_the_root",
    ),
    Guard(
        "developer-mode",
        "Without developer mode, a script or a page is refused before the call is recorded",
        Patch(
            "runners/targets/workspaces.py",
            "if tool.developer and not workspace.policy.developer:",
            "if False:",
        ),
        failing_test=f"{_TOOL_CALLS}::test_scripts_and_pages_need_developer_mode_and_a_local_caller[rest]",
    ),
    Guard(
        "developer-mode-in-the-tool",
        "Without developer mode, no script runs",
        Patch(
            "runners/workspace/tools/execute_command.py",
            "if not workspace.policy.developer:",
            "if False:",
        ),
        failing_test=f"{_COMMAND}::test_execute_command_requires_developer_mode",
    ),
    Guard(
        "developer-mode-for-local-callers",
        "A remote caller runs no script, also in developer mode",
        Patch(
            "runners/targets/workspaces.py",
            'if (tool.developer or tool.uses_browser) and trust != "local":',
            "if False:",
        ),
        failing_test=f"{_TOOL_CALLS}::test_a_remote_caller_cannot_run_scripts_in_developer_mode",
    ),
    Guard(
        "developer-mode-of-this-process",
        "Developer mode of a command line ends with its process",
        Patch(
            "runners/targets/workspaces.py",
            "if target.is_local and (enabled_here or developer_target == target.id):",
            "if target.is_local:",
        ),
        failing_test=f"{_WORKSPACES}::test_developer_mode_from_the_command_line_ends_with_its_process",
    ),
)

_SCRIPTS = (
    Guard(
        "allowed-scripts",
        "A script that policy does not allow is not run",
        Patch(
            "runners/workspace/scripts/package_scripts.py", "if name not in allowed:", "if False:"
        ),
        failing_test=f"{_COMMAND}::test_a_script_needs_both_the_policy_and_package_json",
    ),
    Guard(
        "script-environment",
        "A script does not inherit the secrets of its process",
        Patch(
            "runners/child_environment.py",
            "        if name in names or name.startswith(prefixes)\n",
            "",
        ),
        failing_test=f"{_COMMAND}::test_a_script_does_not_inherit_the_workers_secrets",
    ),
    Guard(
        "driver-environment",
        "Playwright's driver does not inherit the secrets of its process",
        Patch(
            "runners/browser/pool/driver.py",
            "    transport.get_driver_env = _driver_environment  # type: ignore[attr-defined]\n",
            "",
        ),
        failing_test="tests/runners/browser/pool/test_runtime.py::"
        "test_driver_and_browser_do_not_inherit_the_secrets_of_their_process",
    ),
    Guard(
        "script-arguments",
        "The shell does not interpret the arguments of a script",
        Patch(
            "runners/workspace/scripts/package_scripts.py",
            "f'{self.command} \"$@\"' if args",
            "f\"{self.command} {' '.join(args)}\" if args",
        ),
        failing_test=f"{_COMMAND}::test_the_shell_does_not_interpret_arguments",
    ),
    Guard(
        "script-arguments-size",
        "The arguments of a script have a maximum number and size",
        Patch(
            "runners/workspace/tools/execute_command.py",
            "if len(args) > MAX_ARGS or size > MAX_ARGS_BYTES:",
            "if False:",
        ),
        failing_test=f"{_COMMAND}::test_arguments_that_no_process_can_receive_are_refused[too many]",
    ),
    Guard(
        "script-output-masked",
        "The secrets of a run are masked in the output of a script",
        Patch(
            "runners/workspace/tools/execute_command.py",
            'return {"ok": status == 0, "logs": output.lines(ctx.mask)}',
            'return {"ok": status == 0, "logs": output.lines()}',
        ),
        failing_test=f"{_COMMAND}::test_secrets_of_the_run_are_masked_in_the_output",
    ),
    Guard(
        "script-output-size",
        "The output of a script has a maximum size",
        Patch(
            "runners/workspace/scripts/script_output.py",
            "while self._tail_bytes - len(self._tail[0]) >= TAIL_BYTES:",
            "while False:",
        ),
        failing_test=f"{_COMMAND}::test_long_output_is_cut_in_the_middle_with_a_note",
    ),
    Guard(
        "dev-server-needs-developer-mode",
        "The project's dev script is started in developer mode only",
        Patch(
            "runners/workspace/preview/dev_server.py",
            "if not workspace.policy.developer:",
            "if False:",
        ),
        failing_test=f"{_DEV_SCRIPT}::test_a_dev_script_is_not_started_for_other_callers[policy0]",
    ),
    Guard(
        "preview-pages-stay-local",
        "A page of a preview sends no request to another machine",
        Patch(
            "runners/network/loopback.py",
            "if host not in self.hosts or not (found := loopback_addresses(host)):\n"
            "            raise EgressDenied(host)",
            "if not (found := loopback_addresses(host)):\n            return [_V4]",
        ),
        failing_test=f"{_PREVIEW}::test_a_request_to_another_host_is_blocked_and_logged",
    ),
    Guard(
        "preview-of-own-port",
        "No page of a preview is opened at a port of this service (the address and the egress rule"
        " check it)",
        (
            Patch(
                "runners/workspace/preview/local_page.py",
                " or port in policy.own_ports:",
                ":",
            ),
            Patch("runners/network/loopback.py", "if port in self.closed_ports:", "if False:"),
        ),
        failing_test=f"{_LOCAL_PAGES}::test_redirects_by_name_are_not_followed_either"
        "[http://localhost:8000/]",
    ),
    Guard(
        "preview-cookies",
        "Pages of a preview do not get the cookies of the run's pages",
        Patch(
            "runners/workspace/preview/local_page.py",
            "session = run_session.resources[key] = run_session.isolated_session(rule)",
            "session = run_session",
        ),
        failing_test=f"{_LOCAL_PAGES}::test_the_cookies_of_the_run_are_not_sent_to_local_pages",
    ),
    Guard(
        "screenshot-replaces-screenshots",
        "A screenshot replaces no file but an earlier screenshot",
        Patch("runners/workspace/tools/browser_action.py", "if not has_mark(before):", "if False:"),
        failing_test=f"{_LOCAL_PAGES}::test_a_screenshot_is_written_nowhere_else[game/bg.png-E_CONFLICT]",
    ),
)

_TARGETS = (
    Guard(
        "target-workspace",
        "A caller does not see the targets of another workspace",
        Patch(
            "runners/targets/targets.py",
            "own = Q(workspace_id=caller.workspace_id) | Q(workspace_id__isnull=True)",
            "own = Q()",
        ),
        failing_test=f"{_REST_TARGETS}::test_a_target_of_another_workspace_is_not_found[GET-]",
    ),
    Guard(
        "target-tenant",
        "A caller does not see the shared targets of another tenant",
        Patch(
            "runners/targets/targets.py",
            "ExecutionTarget.objects.filter(own, tenant_id=caller.tenant_id)",
            "ExecutionTarget.objects.filter(own)",
        ),
        failing_test=f"{_REST_TARGETS}::test_a_shared_target_of_another_tenant_is_not_found",
    ),
    Guard(
        "local-target-named",
        "A remote caller cannot name the folder of this machine's command line",
        Patch(
            "runners/targets/targets.py",
            'return found if caller.trust == "local" else found.filter(is_local=False)',
            "return found",
        ),
        failing_test=f"{_WORKSPACES}::test_the_local_folder_is_only_for_local_callers",
    ),
    Guard(
        "local-target-by-default",
        "A remote caller that names no target does not get the folder of the command line",
        Patch(
            "runners/targets/workspaces.py",
            '    if caller.trust != "local":\n        return False\n',
            "",
        ),
        failing_test=f"{_WORKSPACES}::test_the_local_folder_is_only_for_local_callers",
    ),
    Guard(
        "local-target-unchangeable",
        "The target of the command line's folder cannot be changed",
        Patch(
            "runners/targets/targets.py",
            "is_local__in=[False, is_local]",
            "is_local__in=[False, True]",
        ),
        failing_test=f"{_WORKSPACES}::test_the_target_of_the_local_folder_cannot_be_changed",
    ),
    Guard(
        "disabled-workspace",
        "A disabled workspace is not opened",
        Patch("runners/targets/workspaces.py", "if not target.enabled:", "if False:"),
        failing_test=f"{_WORKSPACES}::test_a_disabled_workspace_target_is_not_replaced_by_another",
    ),
    Guard(
        "disabled-runner",
        "A disabled runner is not called",
        Patch("runners/targets/runner_endpoint.py", "if not target.enabled:", "if False:"),
        failing_test=f"{_RUNNER_CALLS}::test_a_direct_call_of_a_disabled_runner_is_denied_and_audited",
    ),
    Guard(
        "root-of-a-new-target",
        "A target's root is below one of the allowed folders",
        Patch("runners/targets/roots.py", "if not is_allowed_root(root):", "if False:"),
        failing_test=f"{_WORKSPACES}::test_a_root_outside_the_allowed_ones_creates_no_target[/etc]",
    ),
    Guard(
        "root-of-an-opened-target",
        "A root that was replaced by a link to another folder is not opened",
        Patch(
            "runners/targets/workspaces.py",
            " or not _may_be_root(target, given.resolve()):",
            ":",
        ),
        failing_test=f"{_WORKSPACES}::test_a_root_that_became_a_link_outside_the_allowed_ones_is_not_opened",
    ),
    Guard(
        "root-of-another-workspace",
        "No target is saved with a folder of another workspace",
        Patch("runners/targets/roots.py", "            raise RootTaken(other)", "            pass"),
        failing_test=f"{_ROOTS}::test_an_operator_is_told_which_target_has_the_folder",
    ),
    Guard(
        "root-of-another-workspace-at-use",
        "A target made before the rule, or moved by a link, opens no folder of another workspace",
        Patch("runners/targets/workspaces.py", "if belongs_to_others(target, root):", "if False:"),
        failing_test=f"{_ROOTS}::test_of_two_targets_older_than_the_rule_the_first_keeps_the_folder",
    ),
    Guard(
        "root-in-the-home",
        "The home of the installation is no workspace",
        Patch(
            "runners/targets/roots.py",
            "return root.is_relative_to(settings.CONTINUITY_HOME.resolve())",
            "return False",
        ),
        failing_test=f"{_WORKSPACES}::test_the_home_directory_of_the_server_is_never_a_workspace[artifacts]",
    ),
    Guard(
        "root-hidden-from-remote-callers",
        "A remote caller does not see the path of a workspace's folder",
        Patch(
            "runners/targets/services.py",
            'row.kind == TargetKind.WORKSPACE and principal.trust != "local"',
            "False",
        ),
        failing_test=f"{_REST_TARGETS}::test_the_path_of_a_folder_is_returned_to_local_callers_only",
    ),
    Guard(
        "shared-target-unchangeable",
        "A caller cannot change a target that all workspaces use",
        Patch(
            "runners/targets/services.py",
            "if row.workspace_id is None:",
            "if False:",
        ),
        failing_test=f"{_REST_TARGETS}::test_a_shared_target_is_readable_and_not_writable",
    ),
    Guard(
        "target-id-of-another-workspace",
        "A command cannot replace the target of another workspace by its id",
        Patch(
            "runners/targets/targets.py",
            "if (found.tenant_id, found.workspace_id) != (fields.tenant_id, fields.workspace_id):",
            "if False:",
        ),
        failing_test=f"{_RUNNER_TARGETS}::test_the_target_id_of_another_workspace_cannot_be_reused",
    ),
    Guard(
        "target-version",
        "A change of a target that was changed meanwhile is refused",
        Patch(
            "runners/targets/targets.py",
            "if if_version is not None and target.version != if_version:",
            "if False:",
        ),
        failing_test=f"{_REST_TARGETS}::test_every_change_raises_the_version_and_audits_the_previous_values",
    ),
    Guard(
        "target-kind",
        "The kind of a target cannot change",
        Patch("runners/targets/targets.py", "if target.kind != fields.kind:", "if False:"),
        failing_test=f"{_RUNNER_TARGETS}::test_the_kind_of_a_target_cannot_change",
    ),
    Guard(
        "target-agents",
        "A target is assigned to principals and to nothing else",
        Patch("runners/targets/targets.py", "    check_agents(fields.config)\n", ""),
        failing_test=f"{_RUNNER_TARGETS}::test_agents_are_principals[local]",
    ),
    Guard(
        "target-scope",
        "A caller without the scope targets:admin creates no target (the view and the service check"
        " it)",
        (
            Patch(
                "runners/targets/views.py",
                'scopes = {"GET": services.READ, "POST": services.ADMIN}',
                'scopes = {"GET": services.READ, "POST": services.READ}',
            ),
            Patch(
                "runners/targets/services.py",
                "    principal.require(ADMIN)\n    target_fields = _target_fields(principal, f",
                "    target_fields = _target_fields(principal, f",
            ),
        ),
        failing_test=f"{_REST_TARGETS}::test_writing_targets_needs_its_own_scope[POST-]",
    ),
    Guard(
        "target-endpoint",
        "A runner's endpoint is a public address or one that the operator allows",
        Patch(
            "runners/targets/runner_config.py",
            "return checked_endpoint(endpoint, opened)",
            "return endpoint",
        ),
        failing_test=f"{_REST_TARGETS}::test_an_invalid_target_is_refused_and_not_stored[wrong0]",
    ),
    Guard(
        "target-config-secret",
        "A secret in the config of a target is refused",
        Patch(
            "runners/targets/runner_config.py",
            "secret = next((name for name in checked if _SECRET.search(name)), None)",
            "secret = None",
        ),
        failing_test=f"{_REST_TARGETS}::test_an_invalid_target_is_refused_and_not_stored[wrong11]",
    ),
    Guard(
        "target-token-header",
        "A runner's token cannot add a header to the request",
        Patch(
            "runners/targets/runner_config.py",
            "if text and not _TOKEN.fullmatch(text):",
            "if False:",
        ),
        failing_test=f"{_REST_TARGETS}::test_an_invalid_target_is_refused_and_not_stored[wrong14]",
    ),
    Guard(
        "target-token-encrypted",
        "A runner's token is stored encrypted",
        (
            Patch(
                "runners/targets/targets.py",
                'sealed = seal_column(target, "sealed_auth_token", auth_token.encode())',
                "sealed = auth_token.encode()",
            ),
            Patch(
                "runners/targets/runner_endpoint.py",
                'unseal_column(target, "sealed_auth_token")',
                "bytes(target.sealed_auth_token)",
            ),
        ),
        failing_test=f"{_REST_TARGETS}::test_a_token_is_accepted_and_never_returned",
    ),
    Guard(
        "target-token-in-a-confirmation",
        "A runner's token is not in the request that policy and people see (the service and the"
        " display of arguments mask it)",
        (
            Patch(
                "runners/targets/services.py",
                'masked = {**fields, "authToken": "***"} if has_token else fields',
                "masked = fields",
            ),
            Patch(
                "decisions/authorization/authorize.py",
                "storable(redact_value(dict(args)))",
                "storable(dict(args))",
            ),
        ),
        failing_test=f"{_REST_TARGETS}::test_a_confirmation_of_a_new_target_does_not_contain_its_token",
    ),
    Guard(
        "target-change-needs-policy",
        "Policy is evaluated before a target is changed",
        Patch(
            "runners/targets/services.py",
            "approval = admit_call(\n        tool_call_request(principal, tool, fields,"
            " display_args=masked, shown_args=shown)\n    )",
            "approval = None",
        ),
        failing_test=f"{_REST_TARGETS}::test_a_confirmation_of_a_new_target_does_not_contain_its_token",
    ),
    Guard(
        "target-change-binds-state",
        "An approved change of a target is not made if the target has changed",
        Patch(
            "runners/targets/services.py",
            "if basis_of_change(tool, target_id, locks=True) != confirmed_basis(approval):",
            "if False:",
        ),
        failing_test="tests/runners/targets/test_confirmed_target_changes.py::"
        "test_a_change_after_the_approval_was_found_is_found_under_the_lock[delete_target]",
    ),
    Guard(
        "target-deletion-binds-rules",
        "An approved deletion of a target retires no policy rule that was added since",
        Patch(
            "runners/targets/services.py",
            "list_rules_for_target(target_id, locks=locks) if is_deletion else []",
            "[]",
        ),
        failing_test="tests/runners/targets/test_confirmed_target_changes.py::"
        "test_an_approved_deletion_retires_no_rule_that_the_person_did_not_see",
    ),
    Guard(
        "default-target-of-a-workspace",
        "A workspace has one default target of a kind",
        Sql("DROP INDEX target_default_of_workspace", "DROP INDEX target_default_of_workspace"),
        failing_test=f"{_REST_TARGETS}::test_a_workspace_has_one_default_target_per_kind",
    ),
    Guard(
        "default-target-of-a-tenant",
        "A tenant has one default target of a kind",
        Sql("DROP INDEX target_default_of_tenant", "DROP INDEX target_default_of_tenant"),
        failing_test=f"{_WORKSPACES}::test_a_tenant_has_one_default_target",
    ),
    Guard(
        "target-kind-known",
        "The database has no target of an unknown kind",
        Sql("ALTER TABLE runners_executiontarget DROP CONSTRAINT target_kind_known"),
        failing_test=f"{_WORKSPACES}::test_the_database_refuses_a_target[unknown kind]",
    ),
    Guard(
        "local-target-is-a-folder",
        "The database has no local target that is a default",
        Sql("ALTER TABLE runners_executiontarget DROP CONSTRAINT target_local_is_a_folder"),
        failing_test=f"{_WORKSPACES}::test_the_database_refuses_a_target[local default]",
    ),
)

_INVALID_ANSWER = f"{_GATEWAY_CALLS}::test_a_response_of_any_other_form_is_a_shape_failure"

_OPENED = "tests/runners/targets/test_opened_addresses.py"

_GATEWAY = (
    Guard(
        "runner-address",
        "A runner at an address that is not allowed is not called",
        Patch(
            "runners/gateway/client.py",
            "return checked_endpoint(endpoint, opened)",
            "return endpoint",
        ),
        failing_test=f"{_GATEWAY_REACH}::test_an_endpoint_that_is_not_allowed_is_not_called"
        "[http://169.254.169.254/latest]",
    ),
    Guard(
        "runner-opened-address",
        "The address that is opened for a runner is not used for another address",
        Patch(
            "runners/gateway/endpoint.py",
            'return opened if opened and loopback_address(endpoint) == opened else ""',
            "return opened",
        ),
        failing_test=f"{_OPENED}::test_the_address_of_an_endpoint[http://127.0.0.1/-127.0.0.1:80]",
    ),
    Guard(
        "runner-opened-by-command-line",
        "Only the command line opens an address on loopback for a runner",
        Patch(
            "runners/targets/targets.py",
            'opened = opening if columns.pop("opens_address") or opening == opened else ""',
            'opened = opening if [columns.pop("opens_address")] else ""',
        ),
        failing_test=f"{_OPENED}::test_only_the_command_line_opens_an_address",
    ),
    Guard(
        "runner-resolved-addresses",
        "A runner whose name resolves to an address that is not allowed is not called",
        Patch(
            "runners/network/http_client.py",
            "        self._egress.check(host, port, addresses)\n",
            "",
        ),
        failing_test=f"{_GATEWAY_REACH}::test_a_name_is_allowed_only_if_all_its_addresses_are",
    ),
    Guard(
        "runner-address-pinned",
        "A call connects to the address that was checked and resolves no name again",
        Patch(
            "runners/network/http_client.py",
            "self._inner.connect_tcp(str(address), port, timeout)",
            "self._inner.connect_tcp(host, port, timeout)",
        ),
        failing_test=f"{_GATEWAY_REACH}::test_a_call_connects_to_the_address_that_was_checked",
    ),
    Guard(
        "runner-certificate",
        "A runner whose certificate is not trusted is not called",
        Patch(
            "runners/network/http_client.py",
            "return ssl.create_default_context()",
            "return ssl._create_unverified_context()",
        ),
        failing_test=f"{_GATEWAY_REACH}::test_a_self_signed_certificate_is_not_trusted",
    ),
    Guard(
        "runner-status",
        "A runner's error status is a failure, whatever the body says",
        Patch("runners/gateway/client.py", "if not 200 <= response.status < 300:", "if False:"),
        failing_test=f"{_GATEWAY_FAILURES}::test_a_failing_status_takes_precedence_over_the_body[500]",
    ),
    Guard(
        "runner-answer-size",
        "A runner's answer has a maximum size, also one that does not announce it",
        Patch(
            "runners/network/http_client.py", "if usage.received > usage.max_received:", "if False:"
        ),
        failing_test=f"{_GATEWAY_FAILURES}::test_a_response_over_the_size_limit_is_a_failure"
        "[too_much_in_chunks]",
    ),
    Guard(
        "runner-updates",
        "A call passes on a maximum number of updates",
        Patch("runners/gateway/client.py", "            check_update_count(passed_on)\n", ""),
        failing_test=f"{_GATEWAY_FAILURES}::test_too_many_updates_end_the_call",
    ),
    Guard(
        "runner-answer-ok",
        "An answer whose `ok` is neither true nor false is a failure",
        Patch(
            "runners/gateway/response_parser.py",
            'if not isinstance(value, dict) or not isinstance(value.get("ok"), bool):',
            "if not isinstance(value, dict):",
        ),
        failing_test=f"{_INVALID_ANSWER}[answer10]",
    ),
    Guard(
        "runner-answer-without-output",
        "A successful answer without an output is a failure",
        Patch(
            "runners/gateway/response_parser.py",
            'if "output" not in value or value.get("error") is not None:\n'
            '            raise _shape("ok is true, but output is missing or error is set")\n'
            "        return value",
            'return {"output": None, **value}',
        ),
        failing_test=f"{_INVALID_ANSWER}[answer8]",
    ),
    Guard(
        "runner-call-may-have-arrived",
        "A call that may have reached its runner has an unknown effect",
        Patch(
            "runners/network/http_client.py",
            "        _current_usage.get().sent = True\n",
            "",
        ),
        failing_test=f"{_GATEWAY_FAILURES}::test_a_broken_connection_leaves_the_effect_unknown[reset_at_once]",
    ),
    Guard(
        "no-fallback-of-a-sent-call",
        "A call that may have reached its runner is not made by the local tool as well",
        Patch(
            "runners/invocation/fallback.py",
            'in _UNREACHED and details.get("effect") == "none"',
            "in _UNREACHED",
        ),
        failing_test=f"{_FALLBACK}::test_a_call_that_may_have_reached_the_runner_does_not_fall_back",
    ),
    Guard(
        "fallback-only-if-configured",
        "A call falls back only if its target says so",
        Patch(
            "runners/invocation/fallback.py",
            "if result.ok or not unreached or not runner.falls_back:",
            "if result.ok or not unreached:",
        ),
        failing_test=f"{_FALLBACK}::test_with_on_unreachable_deny_the_call_fails",
    ),
    Guard(
        "runner-call-deadline",
        "A call on a runner ends with the run's time, also before the target's timeout",
        Patch(
            "runners/gateway/request.py",
            "return min(at_most, time.monotonic() + own_ms / 1000)",
            "return time.monotonic() + own_ms / 1000",
        ),
        failing_test=f"{_GATEWAY_FAILURES}::test_the_runs_deadline_ends_a_call_before_the_targets_timeout",
    ),
    Guard(
        "published-tool-of-any-name",
        "A runner cannot publish a tool `*`, which a policy rule would take for all tools",
        Patch(
            "runners/targets/published_tools.py",
            'if name.strip() != name or name == "*":',
            "if name.strip() != name:",
        ),
        failing_test=f"{_OFFERED_TOOLS}::test_published_tools_are_limited_and_checked",
    ),
    Guard(
        "published-tools-limit",
        "A runner publishes a maximum number of tools",
        Patch(
            "runners/targets/published_tools.py",
            "    for one in listed[:MAX_OFFERS]:\n        offer",
            "    for one in listed:\n        offer",
        ),
        failing_test=f"{_OFFERED_TOOLS}::test_published_tools_are_limited_and_checked",
    ),
    Guard(
        "published-schema-references",
        "A published schema refers to no other document",
        Patch(
            "runners/targets/published_tools.py",
            "_SCHEMA_MAX_DEPTH or not _is_self_contained(raw):",
            "_SCHEMA_MAX_DEPTH:",
        ),
        failing_test=f"{_OFFERED_TOOLS}::test_published_tools_are_limited_and_checked",
    ),
    Guard(
        "published-tools-size",
        "A runner's list of tools has a maximum size",
        Patch("runners/gateway/probe.py", "if len(body) > CATALOGUE_MAX_BYTES:", "if False:"),
        failing_test=f"{_OFFERED_TOOLS}::test_a_failed_tool_listing_keeps_the_earlier_tools"
        "[<lambda>-more than 262144 bytes]",
    ),
    Guard(
        "tools-of-another-runner",
        "A target with a new endpoint does not keep the tools of the old one",
        Patch("runners/targets/targets.py", "if endpoint_of(target) != old_endpoint:", "if False:"),
        failing_test=f"{_OFFERED_TOOLS}::test_a_new_endpoint_discards_the_stored_tools",
    ),
    Guard(
        "denied-tool-not-shown",
        "A runner's tool that policy denies is not shown to models",
        Patch(
            "runners/remote_tools/model_facing.py",
            'return on.enabled and on.verdict.decision != "deny"',
            "return on.enabled",
        ),
        failing_test=f"{_MCP_TARGETS}::test_a_tool_that_policy_denies_is_not_listed_and_a_call_is_denied[http]",
    ),
    Guard(
        "runner-tool-named-as-a-local-one",
        "A runner's tool cannot take the name of a local tool in a model's list",
        Patch(
            "runners/remote_tools/model_facing.py",
            "wire if is_free[name] and wire not in local else _marked(name)",
            "wire if is_free[name] else _marked(name)",
        ),
        failing_test=f"{_MCP_TARGETS}::test_a_runner_tool_with_the_name_of_a_built_in_tool_gets_its_own_name[http]",
    ),
    Guard(
        "runner-call-once",
        "A call on a runner is not repeated after its worker was lost, because its effect is"
        " unknown",
        Patch(
            "runners/remote_tools/lookup.py",
            "return Tool(name, KIND, Effect.ONCE,",
            "return Tool(name, KIND, Effect.READ,",
        ),
        failing_test=f"{_RUNNER_CALLS}::test_a_call_in_flight_when_its_worker_was_lost_is_not_sent_again",
    ),
)

_REFUSED_HEADERS = (
    f"{_RUNNER_PROTOCOL}::test_web_origins_foreign_host_names_and_other_content_types_are_refused"
)
_WRONG_ARGUMENTS = f"{_RUNNER_PROTOCOL}::test_wrong_arguments_are_reported_and_nothing_runs"

_DOCKER_RUNNER = (
    Guard(
        "runner-token",
        "A docker-runner executes only for callers with its token",
        Patch(
            "runners/docker_runner/app.py",
            "                self._access.check_token(headers)\n                check_content",
            "                check_content",
        ),
        failing_test=f"{_RUNNER_START}::test_a_runner_with_a_token_executes_only_for_callers_with_the_token",
    ),
    Guard(
        "runner-token-for-its-tools",
        "A docker-runner lists its tools only for callers with its token",
        Patch(
            "runners/docker_runner/app.py",
            "                self._access.check_token(headers)\n                await send_json",
            "                await send_json",
        ),
        failing_test=f"{_RUNNER_PROTOCOL}::test_listing_the_tools_requires_the_token",
    ),
    Guard(
        "runner-origin",
        "A docker-runner refuses requests of web pages",
        Patch("runners/docker_runner/access.py", 'if b"origin" in headers:', "if False:"),
        failing_test=f"{_REFUSED_HEADERS}[403-FORBIDDEN-headers0]",
    ),
    Guard(
        "runner-host",
        "A docker-runner refuses a Host that is not its own (DNS rebinding)",
        Patch(
            "runners/docker_runner/access.py",
            'if not self._is_own_host(headers.get(b"host", b"").decode("latin-1")):',
            "if False:",
        ),
        failing_test=f"{_REFUSED_HEADERS}[403-FORBIDDEN-headers2]",
    ),
    Guard(
        "runner-content-type",
        "A docker-runner refuses a body that a form of a web page could send",
        Patch(
            "runners/docker_runner/access.py",
            'if kind.strip() != "application/json" or charset not in {"", "charset=utf-8"}:',
            "if False:",
        ),
        failing_test=f"{_REFUSED_HEADERS}[415-INVALID_REQUEST-headers7]",
    ),
    Guard(
        "runner-body-size",
        "A docker-runner refuses a large body (by its declared size, while it is read, and when it"
        " is parsed)",
        (
            Patch(
                "runners/docker_runner/request_body.py",
                "if self._declared_length.isdigit() and int(self._declared_length) > MAX_BYTES:",
                "if False:",
            ),
            Patch(
                "runners/docker_runner/request_body.py", "if len(body) > MAX_BYTES:", "if False:"
            ),
            Patch("runners/docker_runner/envelope.py", "limit=MAX_BYTES", "limit=2 * MAX_BYTES"),
        ),
        failing_test=f"{_RUNNER_PROTOCOL}::test_a_body_that_is_too_large_is_refused_with_or_without"
        "_content_length",
    ),
    Guard(
        "runner-calls-at-once",
        "A docker-runner executes a maximum number of calls at once",
        Patch("runners/docker_runner/app.py", "if self._running >= MAX_CALLS:", "if False:"),
        failing_test=f"{_RUNNER_ANSWERS}::test_calls_over_the_limit_are_refused",
    ),
    Guard(
        "runner-defect",
        "A caller sees of a defect in a runner's tool its error id alone",
        (
            Patch(
                "runners/docker_runner/app.py", "import secrets\n", "import secrets\nimport sys\n"
            ),
            Patch(
                "runners/docker_runner/app.py",
                '"Internal error of the runner; its log has the cause under the error id."',
                "str(sys.exc_info()[1])",
            ),
        ),
        failing_test=f"{_RUNNER_ANSWERS}::test_a_tool_that_raises_is_an_internal_error_without_its_details",
    ),
    Guard(
        "runner-folder-hidden",
        "A caller behind a proxy does not see the path of the runner's folder",
        Patch(
            "runners/docker_runner/access.py",
            "return is_loopback(peer) and not any(name in headers for name in _FORWARDED)",
            "return is_loopback(peer)",
        ),
        failing_test=f"{_RUNNER_PROTOCOL}::test_health_omits_the_folder_for_a_request_through_a_proxy",
    ),
    Guard(
        "runner-weak-token",
        "A docker-runner does not start with a short token",
        Patch(
            "runners/docker_runner/command_line.py",
            "(len(token) < TOKEN_MIN or not token.isascii()",
            "(not token.isascii()",
        ),
        failing_test=f"{_RUNNER_START}::test_a_runner_with_unsafe_options_does_not_serve[short token]",
    ),
    Guard(
        "runner-open-without-a-token",
        "A docker-runner that other machines can reach does not start without a token",
        Patch(
            "runners/docker_runner/command_line.py", "if is_open and token is None:", "if False:"
        ),
        failing_test=f"{_RUNNER_START}::test_a_runner_with_unsafe_options_does_not_serve[no token]",
    ),
    Guard(
        "runner-folder-overlaps-the-home",
        "A docker-runner does not start in a folder that holds the installation's keys",
        Patch(
            "runners/docker_runner/command_line.py",
            "if home.is_relative_to(root) or root.is_relative_to(home):",
            "if False:",
        ),
        failing_test=f"{_RUNNER_START}::test_a_runner_with_unsafe_options_does_not_serve"
        "[folder in the home]",
    ),
    Guard(
        "runner-unknown-arguments",
        "A runner's tool refuses unknown arguments",
        Patch(
            "runners/docker_runner/tool.py",
            'ConfigDict(extra="forbid", strict=True)',
            "ConfigDict(strict=True)",
        ),
        failing_test=f"{_WRONG_ARGUMENTS}[echo-args18]",
    ),
    Guard(
        "runner-argument-types",
        "A runner's tool refuses arguments of another type",
        Patch(
            "runners/docker_runner/tool.py",
            'ConfigDict(extra="forbid", strict=True)',
            'ConfigDict(extra="forbid")',
        ),
        failing_test=f"{_WRONG_ARGUMENTS}[math.add-args15]",
    ),
    Guard(
        "runner-forbidden-names",
        "A runner's file tools refuse forbidden names",
        Patch(
            "runners/docker_runner/tools/files.py",
            "return Sandbox(runner_folder.root, _FORBIDDEN)",
            "return Sandbox(runner_folder.root, ())",
        ),
        failing_test=f"{_RUNNER_TOOLS}::test_a_path_that_is_not_a_readable_file_of_the_folder_is_refused"
        "[.git/config-E_DENY_PATH]",
    ),
    Guard(
        "runner-file-size",
        "A runner reads no file above the limit",
        Patch(
            "runners/docker_runner/tools/files.py",
            "data = sandbox.read(args.path, limit=OUTPUT_BYTES)",
            "data = sandbox.read(args.path, limit=2 * OUTPUT_BYTES)",
        ),
        failing_test=f"{_RUNNER_TOOLS}::test_a_path_that_is_not_a_readable_file_of_the_folder_is_refused"
        "[large-E_TOO_LARGE]",
    ),
    Guard(
        "runner-appends",
        "Of many appends to a runner's file at once, none is lost",
        Patch(
            "runners/docker_runner/tools/files.py",
            "with open_sandbox(runner_folder) as sandbox, _writing:",
            "with open_sandbox(runner_folder) as sandbox:",
        ),
        failing_test=f"{_RUNNER_TOOLS}::test_concurrent_appends_lose_nothing",
    ),
    Guard(
        "runner-working-folder",
        "A command does not run in a folder that a link names",
        Patch(
            "runners/docker_runner/tools/bash.py", "        os.close(sandbox.open_dir(cwd))\n", ""
        ),
        failing_test=f"{_RUNNER_TOOLS}::test_a_command_runs_only_in_a_folder_below_the_root"
        "[link-folder-E_DENY_PATH]",
    ),
    Guard(
        "runner-output-size",
        "The output of a runner's command has a maximum size",
        Patch(
            "runners/docker_runner/tools/bash.py",
            "fits = text if _size(text) <= self._room else _longest(text, self._room)",
            "fits = text",
        ),
        failing_test=f"{_RUNNER_TOOLS}::test_the_updates_mark_truncated_output_once",
    ),
    Guard(
        "runner-environment",
        "A command without isolation does not see the runner's other environment variables",
        Patch(
            "runners/child_environment.py",
            "        if name in names or name.startswith(prefixes)\n",
            "",
        ),
        failing_test=f"{_RUNNER_START}::test_commands_do_not_see_the_runners_other_variables",
    ),
    Guard(
        "isolation-network",
        "A command has no network unless the operator allows it",
        Patch(
            "runners/docker_runner/isolation/bubblewrap.py",
            'yield "--unshare-net"',
            "yield from ()",
        ),
        failing_test=f"{_BUBBLEWRAP}::test_there_is_no_network_unless_it_is_allowed",
    ),
    Guard(
        "isolation-read-only-root",
        "A command can change only its folder and its own temporary folders",
        Patch(
            "runners/docker_runner/isolation/bubblewrap.py",
            '"--remount-ro", "/dev", "--remount-ro", "/")',
            '"--remount-ro", "/dev")',
        ),
        failing_test=f"{_BUBBLEWRAP}::test_nothing_outside_of_the_folder_can_be_written[/x]",
    ),
    Guard(
        "isolation-closed-folder",
        "A command sees nothing of the installation's home",
        Patch(
            "runners/docker_runner/isolation/bubblewrap.py",
            "if shown and folder.is_dir():",
            "if False:",
        ),
        failing_test=f"{_BUBBLEWRAP}::test_a_closed_folder_is_empty_also_below_usr",
    ),
    Guard(
        "isolation-system-calls",
        "A command makes no system call that its filter refuses",
        Patch(
            "runners/docker_runner/isolation/bubblewrap.py",
            "filter=self._filter.hex(),",
            'filter="",',
        ),
        failing_test=f"{_BUBBLEWRAP}::test_keyrings_and_io_uring_are_unavailable",
    ),
    Guard(
        "isolation-environment",
        "A command under bubblewrap does not see the runner's environment (it is neither passed to"
        " bubblewrap nor on to the command)",
        (
            Patch(
                "runners/docker_runner/isolation/bubblewrap.py",
                "                env={},\n",
                "                env=dict(os.environ),\n",
            ),
            Patch(
                "runners/docker_runner/isolation/bubblewrap.py",
                '"--die-with-parent", "--clearenv")',
                '"--die-with-parent")',
            ),
        ),
        failing_test=f"{_BUBBLEWRAP}::test_the_runners_environment_and_home_folders_are_not_visible",
    ),
    Guard(
        "request-without-network",
        "http.request sends nothing from a runner without a network",
        Patch(
            "runners/docker_runner/tools/http_request.py",
            "if not env.folder.allow_net:",
            "if False:",
        ),
        failing_test=f"{_HTTP_REQUEST}::test_without_the_network_nothing_is_sent",
    ),
    Guard(
        "request-resolved-addresses",
        "http.request sends nothing to a name that resolves to a private address",
        Patch(
            "runners/docker_runner/tools/http_request.py",
            "create_pool(EgressPolicy())",
            "create_pool(EgressPolicy(permits=lambda *_: True))",
        ),
        failing_test=f"{_HTTP_REQUEST}::test_a_name_that_resolves_to_a_private_address_is_refused",
    ),
    Guard(
        "request-address-pinned",
        "http.request connects to the address that was checked and resolves no name again",
        Patch(
            "runners/network/http_client.py",
            "self._inner.connect_tcp(str(address), port, timeout)",
            "self._inner.connect_tcp(host, port, timeout)",
        ),
        failing_test=f"{_HTTP_REQUEST}::test_a_request_connects_to_the_address_that_was_checked",
    ),
    Guard(
        "request-answer-size",
        "The answer to http.request has a maximum size",
        Patch(
            "runners/docker_runner/tools/http_request.py",
            "bytes(data[: args.max_bytes])",
            "bytes(data)",
        ),
        failing_test=f"{_HTTP_REQUEST}::test_a_large_body_is_cut_and_a_binary_body_is_returned_as_base64",
    ),
    Guard(
        "request-header-of-the-runner",
        "A caller of http.request cannot set the headers of the connection",
        Patch(
            "runners/docker_runner/tools/http_request.py",
            "if name.lower() in _RESERVED:",
            "if False:",
        ),
        failing_test=f"{_WRONG_ARGUMENTS}[http.request-args20]",
    ),
    Guard(
        "request-header-injection",
        "A header of http.request cannot contain another one",
        Patch(
            "runners/docker_runner/tools/http_request.py",
            "if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):",
            "if False:",
        ),
        failing_test=f"{_WRONG_ARGUMENTS}[http.request-args21]",
    ),
)

_NETWORK = (
    Guard(
        "private-address",
        "The address of a remote caller or of a runner is public",
        Patch("runners/network/address.py", 'if trust != "local":', "if False:"),
        failing_test=f"{_REST_TARGETS}::test_an_invalid_target_is_refused_and_not_stored[wrong0]",
    ),
    Guard(
        "public-metadata-address",
        "A metadata service at a public address is refused",
        Patch(
            "runners/network/address.py",
            "if is_metadata(address) or not address.is_global",
            "if not address.is_global",
        ),
        failing_test=f"{_REST_TARGETS}::test_a_metadata_service_is_refused[http://168.63.129.16/-]",
    ),
    Guard(
        "allowed-metadata-address",
        "A metadata service is refused, also if the operator allows its network",
        Patch(
            "runners/network/address.py",
            "if any(is_metadata(candidate) for candidate in (address, *embedded_ipv4(address))):",
            "if False:",
        ),
        failing_test=f"{_REST_TARGETS}::test_a_metadata_service_is_refused"
        "[http://169.254.169.254/-0.0.0.0/0,::/0]",
    ),
    Guard(
        "embedded-address",
        "An IPv6 address that embeds a private IPv4 address is refused",
        Patch(
            "runners/network/address.py",
            "return all(is_public(embedded) for embedded in embedded_ipv4(address))",
            "return True",
        ),
        failing_test=f"{_REST_TARGETS}::test_a_metadata_service_is_refused[http://[64:ff9b::a9fe:a9fe]/-]",
    ),
    Guard(
        "private-name",
        "A name of a private network is refused without a look-up",
        Patch(
            "runners/network/address.py",
            'return not allowed_networks() and is_private_name(name.removesuffix("."))',
            "return False",
        ),
        failing_test=f"{_HTTP_REQUEST}::test_private_addresses_are_refused[http://router.lan/]",
    ),
    Guard(
        "web-schemes",
        "Only http and https addresses are opened",
        Patch(
            "runners/network/address.py",
            'if parts is None or parts["scheme"].lower() not in DEFAULT_PORTS:',
            "if parts is None:",
        ),
        failing_test=f"{_TASK_TABS}::test_only_web_addresses_are_opened[file://localhost/etc/passwd]",
    ),
    Guard(
        "every-address-of-a-name",
        "A name is allowed only if all its addresses are",
        Patch(
            "runners/network/egress.py",
            "if not all(self.permits(address, port) for address in addresses):",
            "if not any(self.permits(address, port) for address in addresses):",
        ),
        failing_test=f"{_GATEWAY_REACH}::test_a_name_is_allowed_only_if_all_its_addresses_are",
    ),
    Guard(
        "pages-through-the-proxy",
        "All requests of a remote caller's pages pass the proxy",
        Patch(
            "runners/browser/session/session.py",
            'if self.trust != "local" and self._proxy is None:',
            "if False:",
        ),
        failing_test=f"{_EGRESS_REQUESTS}::test_a_remote_caller_reaches_the_forbidden_address_in_no_way[image]",
    ),
    Guard(
        "proxy-checks-addresses",
        "The proxy connects a page to public addresses only",
        Patch(
            "runners/network/proxy.py",
            "            self._egress.check(to.host, to.port, addresses)\n",
            "",
        ),
        failing_test=f"{_EGRESS}::test_a_name_that_resolves_to_a_private_address_is_not_opened",
    ),
    Guard(
        "proxy-address-pinned",
        "The proxy connects to the address that was checked and resolves no name again",
        Patch(
            "runners/network/proxy.py",
            "asyncio.open_connection(str(address), to.port, limit=CHUNK)",
            "asyncio.open_connection(to.host, to.port, limit=CHUNK)",
        ),
        failing_test=f"{_PROXY}::test_the_proxy_connects_to_the_checked_address_despite_dns_rebinding",
    ),
    Guard(
        "proxy-resolves-once",
        "The proxy keeps the first address of a name for a minute",
        Patch(
            "runners/network/proxy.py",
            "if cached is not None and cached[0] > now:",
            "if False:",
        ),
        failing_test=f"{_PROXY}::test_the_proxy_connects_to_the_checked_address_despite_dns_rebinding",
    ),
    Guard(
        "proxy-connections",
        "A session's pages have a maximum number of connections",
        Patch(
            "runners/network/proxy.py",
            "if len(self._tunnels) >= MAX_CONNECTIONS or self._server is None:",
            "if self._server is None:",
        ),
        failing_test=f"{_PROXY}::test_the_number_of_connections_is_limited",
    ),
    Guard(
        "webrtc-through-the-proxy",
        "WebRTC of a remote caller's page does not bypass the proxy",
        (
            Patch(
                "runners/browser/pool/chromium.py",
                '        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",\n',
                "",
            ),
            Patch(
                "runners/browser/pool/chromium.py",
                '        "--webrtc-ip-handling-policy=disable_non_proxied_udp",\n',
                "",
            ),
        ),
        failing_test=f"{_EGRESS_REQUESTS}::test_no_packet_of_a_remote_callers_page_reaches_the_address[stun]",
    ),
)

_BROWSER = (
    Guard(
        "downloads",
        "A page stores no download on disk",
        Patch(
            "runners/browser/session/downloads.py",
            "        await file.cancel()\n        await file.delete()",
            "        pass",
        ),
        failing_test=f"{_DOCUMENTS}::test_a_download_fails_and_leaves_nothing_on_disk[/report.zip]",
    ),
    Guard(
        "downloads-too-large",
        "A download that exceeds the limit is ended and not stored",
        Patch("runners/browser/session/downloads.py", "if size > MAX_BYTES:", "if False:"),
        failing_test=f"{_DOWNLOADS}::test_a_file_that_is_too_large_is_refused_and_deleted",
    ),
    Guard(
        "downloads-of-own-pages",
        "A download from a page of the product itself is not stored",
        Patch(
            "runners/browser/action_support/downloads.py",
            'check_page_address(download.url.removeprefix("blob:"), ctx)',
            "pass",
        ),
        failing_test=f"{_DOWNLOADS}::test_a_file_of_one_of_the_products_own_pages_is_not_stored",
    ),
    Guard(
        "dialog-answer-of-one-document",
        "The answer to a dialog is not used for a question of the next document",
        Patch(
            "runners/browser/session/tab.py",
            '            self._leaving_to = ""\n            self._watch.answer_next_dialog(None)',
            '            self._leaving_to = ""',
        ),
        failing_test="tests/runners/browser/actions/test_dialogs.py::"
        "test_the_next_document_gets_no_answer_that_was_meant_for_the_last_one",
    ),
    Guard(
        "task-tabs-at-most",
        "A task has at most 20 tabs; further windows are closed",
        Patch(
            "runners/browser/action_support/task_tab.py",
            "if len(self.open) + len(self._keeping) > MAX_TABS:",
            "if False:",
        ),
        failing_test=f"{_OPENED_TABS}::test_more_windows_than_a_task_may_have_are_closed",
    ),
    Guard(
        "windows-of-new-windows",
        "The windows that a window opens before it is a tab are tabs of the task, or closed",
        Patch(
            "runners/browser/session/crashes.py",
            '            popup.on("popup", self._on_popup)  # until `hand_over`\n',
            "",
        ),
        failing_test=f"{_OPENED_TABS}::"
        "test_windows_that_a_new_window_opens_at_once_are_tabs_of_the_task_too",
    ),
    Guard(
        "task-tabs-kept-by-tasks-only",
        "A window that a page opens stays open only while a task works on that page",
        Patch(
            "runners/browser/action_support/task_tab.py",
            "        self.tab.set_popup_handler(None)\n",
            "",
        ),
        failing_test=f"{_OPENED_TABS}::test_a_stopped_task_keeps_no_windows",
    ),
    Guard(
        "popups",
        "A window that a page opens is closed",
        Patch(
            "runners/browser/session/crashes.py",
            "        self.run_in_background(popup.close())\n",
            "",
        ),
        failing_test=f"{_HOSTILE_PAGES}::test_a_popup_is_closed_and_the_page_is_read",
    ),
    Guard(
        "page-of-an-earlier-run",
        "A run does not act on the page that the session's previous run left",
        Patch(
            "runners/browser/session/session.py",
            "if self._run_tab is None or self._run_tab_owner != self.run_id:",
            "if self._run_tab is None:",
        ),
        failing_test=f"{_PRESSING}::test_the_page_of_a_session_is_not_used_in_its_next_run",
    ),
    Guard(
        "screenshot-of-an-earlier-run",
        "A failed run has no screenshot of an earlier run's page",
        Patch(
            "runners/browser/session/session.py",
            "tabs = [tab for tab in self._tabs if tab.run_id == self.run_id]",
            "tabs = list(self._tabs)",
        ),
        failing_test=f"{_FAILURE_PICTURES}::test_a_run_that_is_denied_its_first_page_has_no_screenshot_of_an"
        "_earlier_run[submit_and_verify]",
    ),
    Guard(
        "secret-fields-in-content",
        "The value of a secret field is masked in what is read from a page",
        Patch(
            "runners/browser/page/secrets.js",
            "  if ([...names, ...fieldLabels(element)]",
            "  if ([]",
        ),
        failing_test=f"{_ELEMENTS}::test_the_value_of_a_secret_field_appears_nowhere"
        "[<input name=user_password value={}>]",
    ),
    Guard(
        "secret-values-in-texts",
        "The value of a secret field is masked in the texts of its page",
        Patch(
            "runners/browser/page/secrets.js",
            "    if (!text.includes(value)) continue;\n",
            "    continue;\n",
        ),
        failing_test=f"{_ELEMENT_INDEX}::test_the_value_of_a_secret_field_is_in_no_text",
    ),
    Guard(
        "secret-fields-in-markup",
        "The markup of a page is stored without the values of its secret fields",
        Patch(
            "runners/browser/page/markup.js",
            "(type + masked(html, secret)).toWellFormed()",
            "(type + html).toWellFormed()",
        ),
        failing_test=f"{_ACTION_PAGES}::test_markup_is_stored_with_shadow_roots_and_without_secrets",
    ),
    Guard(
        "secret-fields-in-screenshots",
        "The values of secret fields are covered in a screenshot",
        Patch(
            "runners/browser/interaction/screenshot.py",
            "has_covered = bool(await tab.call(cover_script(), True, seconds_left))",
            "has_covered = False",
        ),
        failing_test=f"{_BROWSER_SESSION}::test_a_screenshot_masks_secret_fields_and_leaves_the_page_unchanged",
    ),
    Guard(
        "secrets-in-failure-screenshots",
        "A page that shows a secret of the run has no screenshot",
        Patch(
            "runners/browser/interaction/screenshot.py",
            "        if not await _hide_secrets(tab, ctx.mask, seconds_left):\n"
            "            return None\n",
            "",
        ),
        failing_test=f"{_FAILURE_PICTURES}::test_a_page_that_displays_a_secret_has_no_screenshot"
        "[canary-4471-str]",
    ),
    Guard(
        "secret-value-in-the-output",
        "A secret that was typed is masked in the tool's output",
        Patch(
            "runners/browser/tools/fill_field.py",
            "shown = MASK if is_secret or field.is_secret else value[:MAX_SHOWN_LENGTH]",
            "shown = value[:MAX_SHOWN_LENGTH]",
        ),
        failing_test=f"{_FILLING}::test_secret_values_are_masked_in_the_output",
    ),
    Guard(
        "trace-headers",
        "A trace has no header that may contain credentials",
        Patch(
            "runners/browser/tracing/sanitize.py",
            "        if name in ALLOWED_HEADERS:\n",
            "        if name:\n",
        ),
        failing_test=f"{_TRACES}::test_no_canary_of_the_page_is_in_its_trace[always]",
    ),
    Guard(
        "trace-addresses",
        "A trace has no address with a key",
        Patch(
            "runners/browser/tracing/sanitize.py",
            "        (name, MASK if _is_key(name) or len(value) >= MIN_KEY_LENGTH else value)\n",
            "        (name, value)\n",
        ),
        failing_test=f"{_TRACES}::test_no_canary_of_the_page_is_in_its_trace[always]",
    ),
    Guard(
        "trace-field-values",
        "A trace has no value of a field",
        Patch(
            "runners/browser/tracing/snapshots.py",
            "return value if is_label and not looks_secret(_names(attributes)) else MASK",
            "return value",
        ),
        failing_test=f"{_TRACES}::test_no_canary_of_the_page_is_in_its_trace[retry]",
    ),
    Guard(
        "trace-secret-values-elsewhere",
        "The value of a secret field is masked in the whole trace",
        Patch(
            "runners/browser/tracing/sanitize.py",
            "pattern = _pattern_of(cleaner.secrets)",
            "pattern = None",
        ),
        failing_test=f"{_TRACES}::test_no_canary_of_the_page_is_in_its_trace[retry]",
    ),
    Guard(
        "trace-console",
        "A trace has no console message but errors and warnings",
        Patch(
            "runners/browser/tracing/sanitize.py",
            'if line.get("messageType") not in LOGGED_TYPES:',
            "if False:",
        ),
        failing_test=f"{_TRACES}::test_no_canary_of_the_page_is_in_its_trace[always]",
    ),
    Guard(
        "trace-files-deleted",
        "The files of a recording are deleted when it ends",
        Patch(
            "runners/browser/tracing/trace.py",
            "            shutil.rmtree(self.path, ignore_errors=True)\n            return\n",
            "            return\n",
        ),
        failing_test=f"{_TRACES}::test_no_recording_is_left_on_disk[retry]",
    ),
    Guard(
        "click-on-a-covered-element",
        "An element that another one covers is not clicked",
        Patch(
            "runners/browser/page/target.js",
            "if (hit && activates(target, hit)) return { x, y };",
            "if (hit) return { x, y };",
        ),
        failing_test=f"{_PRESSING}::test_a_covered_element_is_not_clicked",
    ),
    Guard(
        "input-waits-for-page-events",
        "The page after one that navigates at the first key gets no key",
        Patch(
            "runners/browser/action_support/cdp_input.py",
            "await self.cdp.send(PAGE_THREAD[0], dict(PAGE_THREAD[1]))",
            "pass",
        ),
        failing_test="tests/runners/browser/action_support/test_cdp_input.py::"
        "test_no_input_follows_one_that_started_a_navigation[typing]",
    ),
    Guard(
        "click-hits-its-element",
        "A click that would hit another element than the one that was chosen has no effect",
        Patch(
            "runners/browser/page/target.js",
            "state.hit ??= activates(target, hit);",
            "state.hit = true;",
        ),
        failing_test=f"{_PRESSING}::test_a_click_that_would_miss_hits_no_other_element",
    ),
    Guard(
        "input-in-its-document",
        "Input reaches only the document in which its element was located",
        Patch(
            "runners/browser/interaction/interactor.py",
            "return self.tab.documents == documents and not self.tab.is_leaving",
            "return True",
        ),
        failing_test=f"{_NAVIGATING_PAGES}::test_a_page_that_is_leaving_since_mouse_over_is_not_clicked",
    ),
    Guard(
        "input-not-repeated",
        "A click whose connection broke after it began is not repeated",
        Patch(
            "runners/browser/action_support/input_strategy.py",
            "        if isinstance(cause, CdpLost):\n            raise\n",
            "",
        ),
        failing_test=f"{_INPUT_LOST}::test_a_text_whose_session_is_lost_after_it_started_is_not_written_again"
        "[True]",
    ),
    Guard(
        "input-not-repeated-between-keys",
        "No key is pressed again if the connection breaks between two keys of an action",
        Patch(
            "runners/browser/action_support/cdp_input.py",
            "            if self._has_started:\n                raise connection_lost() from None\n",
            "",
        ),
        failing_test=f"{_INPUT_LOST}::"
        "test_input_whose_session_is_lost_between_two_of_its_parts_is_not_repeated[next-press]",
    ),
    Guard(
        "click-ids-not-reused",
        "The clickId of an element of an earlier document is not reused",
        Patch(
            "runners/browser/action_support/element_index.py",
            '                task.next_click_id = max(task.next_click_id, answer.get("nextId", 0))\n',
            "",
        ),
        failing_test=f"{_ELEMENT_INDEX}::test_the_number_of_a_removed_element_is_not_reused",
    ),
    Guard(
        "observation-not-imitated",
        "The text of a page cannot look like the line of an element",
        Patch(
            "runners/browser/page/outline.js",
            "return NO_TEXT_LINE.test(",
            "return false && NO_TEXT_LINE.test(",
        ),
        failing_test=f"{_OBSERVE}::test_a_page_cannot_imitate_the_line_of_an_element",
    ),
    Guard(
        "observation-without-secrets",
        "The value of a secret field is masked in the text of an observation",
        Patch(
            "runners/browser/page/outline.js",
            "return masked(plainLine(text), this.secrets.values).toWellFormed();",
            "return plainLine(text).toWellFormed();",
        ),
        failing_test=f"{_OBSERVE}::test_a_page_is_observed_as_lines_of_text_and_elements",
    ),
    Guard(
        "login-page-with-credentials",
        "A page that shows a credential is not left open for browser actions",
        Patch(
            "runners/browser/tools/check_login.py",
            "if not await shows_secret(tab, ctx.mask, ctx.seconds_left):",
            "if True:",
        ),
        failing_test="tests/contract/test_mcp_browser.py::"
        "test_a_host_completes_the_second_step_of_a_login_on_its_page[with a credential]",
    ),
    Guard(
        "tab-of-its-task",
        "An action works on the tab of its own task only",
        Patch(
            "runners/browser/action_support/task_tab.py",
            "return next((task for task in self._all if task.tab_id == tab_id), None)",
            "return self._all[0]",
        ),
        failing_test=f"{_TASK_TABS}::test_every_action_uses_the_tab_of_its_own_task[browser_click]",
    ),
    Guard(
        "own-page-requested",
        "An agent does not open a page of the product",
        Patch(
            "runners/browser/actions/task_start.py",
            "    if url is not None:\n        refuse_own_page(url)\n",
            "",
        ),
        failing_test=f"{_NAVIGATING_PAGES}::test_product_pages_are_recognized_under_every_host_name[localhost]",
    ),
    Guard(
        "own-page-shown",
        "An agent does not act on a page of the product to which its page navigated",
        Patch(
            "runners/browser/action_support/task_tab.py",
            "    refuse_own_page(url)\n    if ctx.trust",
            "    if ctx.trust",
        ),
        failing_test=f"{_TASK_TABS}::test_product_pages_are_neither_opened_nor_used",
    ),
    Guard(
        "own-page-gone-back-to",
        "An agent does not go back to a page of the product",
        Patch(
            "runners/browser/actions/browser_go_back.py",
            '        check_page_address(earlier["url"], ctx)\n',
            "",
        ),
        failing_test=f"{_GO_BACK}::test_a_product_page_is_not_gone_back_to",
    ),
    Guard(
        "keys-of-the-clipboard",
        "An agent does not press the keys of the clipboard, which all sessions of a worker share",
        Patch(
            "runners/actions/parameters.py",
            "|[aAbBiIkKyY])",
            "|[a-zA-Z])",
        ),
        failing_test=f"{_ACTION_CATALOGUE}::"
        "test_keys_of_the_browser_and_of_the_clipboard_are_refused[Control+c]",
    ),
    Guard(
        "drag-takes-its-element",
        "A drag that would take another element than the one that was chosen is not made",
        Patch(
            "runners/browser/action_support/drag.py",
            'if (await self._run("pressOutcome"))["outcome"] == "missed":',
            "if False:",
        ),
        failing_test=f"{_DRAGGING}::"
        "test_an_element_that_another_one_covers_when_the_mouse_comes_is_not_dragged",
    ),
    Guard(
        "drag-releases-the-button",
        "A drag that fails after the button was pressed releases the button",
        Patch(
            "runners/browser/action_support/drag.py",
            "                    if is_current():\n",
            "                    if False:\n",
        ),
        failing_test=f"{_DRAGGING}::"
        "test_a_destination_that_disappears_during_the_drag_leaves_the_effect_unknown",
    ),
    Guard(
        "own-page-in-a-frame",
        "An agent does not act on a page that shows one of the product's in a frame",
        Patch(
            "runners/browser/action_support/task_tab.py",
            "        refuse_own_page(frame.url)\n",
            "        pass\n",
        ),
        failing_test=f"{_NAVIGATING_PAGES}::test_a_page_that_shows_a_product_page_in_a_frame_gets_no_input[1]",
    ),
    Guard(
        "takeover-own-page",
        "A person does not open a page of the product in the agent's browser",
        Patch("runners/browser/live/person_input.py", "        refuse_own_page(url)\n", ""),
        failing_test=f"{_TAKEOVER_INPUT}::test_a_person_cannot_open_the_products_own_pages_or_local_schemes",
    ),
    Guard(
        "takeover-schemes",
        "A person opens only web addresses in the agent's browser",
        Patch("runners/browser/live/person_input.py", "url = check_address(to, trust)", "url = to"),
        failing_test=f"{_TAKEOVER_INPUT}::test_a_person_cannot_open_the_products_own_pages_or_local_schemes",
    ),
    Guard(
        "takeover-waits-for-the-call",
        "A person's input waits until the agent's call on the page has ended",
        Patch(
            "runners/browser/session/session.py",
            "        async with self._run_tab_lock:\n            yield self.live_tab()\n",
            "        yield self.live_tab()\n",
        ),
        failing_test=f"{_TAKEOVER_END}::test_input_still_pending_when_the_page_is_released_is_dropped",
    ),
    Guard(
        "actions-for-agents-only",
        "Browser actions are not listed as tools",
        Patch("runners/tools/registry.py", "(kind,)) if not tool.agent_only]", "(kind,))]"),
        failing_test=f"{_ACTIONS_NOT_LISTED}::test_the_tool_list_contains_no_browser_action",
    ),
    Guard(
        "session-workspace",
        "An operator does not find the browser sessions of another workspace",
        Patch(
            "runners/browser_sessions.py",
            "id=session_id, workspace_id=principal.workspace_id, closed_at__isnull=True",
            "id=session_id, closed_at__isnull=True",
        ),
        failing_test=f"{_SESSIONS}::test_an_operator_of_another_workspace_finds_no_session",
    ),
    Guard(
        "session-owner",
        "A caller does not find the browser session of another principal",
        Patch(
            "runners/browser_sessions.py",
            "if found is None or not may_access(principal, found):",
            "if found is None:",
        ),
        failing_test=f"{_SESSIONS}::test_only_an_open_session_of_the_caller_is_found[another's]",
    ),
    Guard(
        "session-trust",
        "A remote caller does not use the browser session of a local caller",
        Patch(
            "runners/browser_sessions.py",
            "if found.trust != principal.trust and not principal.id.startswith(ADMIN):",
            "if False:",
        ),
        failing_test=f"{_SESSIONS}::test_a_remote_caller_cannot_use_the_session_of_a_local_caller",
    ),
    Guard(
        "session-state-of-its-worker",
        "Only the worker that has a session open saves its state",
        Patch(
            "runners/browser_sessions.py",
            "rows = BrowserSession.objects.filter(id=session_id, worker_id=worker_id, closed",
            "rows = BrowserSession.objects.filter(id=session_id, closed",
        ),
        failing_test=f"{_SESSIONS}::test_a_state_is_encrypted_and_saved_by_its_worker_only",
    ),
    Guard(
        "session-state-encrypted",
        "The cookies of a session are stored encrypted",
        (
            Patch(
                "runners/browser_sessions.py",
                'seal_column(BrowserSession(id=session_id), "sealed_state", saved)',
                "saved",
            ),
            Patch(
                "runners/browser_sessions.py",
                'unseal_column(session, "sealed_state")',
                "bytes(session.sealed_state)",
            ),
        ),
        failing_test=f"{_SESSIONS}::test_a_state_is_encrypted_and_saved_by_its_worker_only",
    ),
    Guard(
        "session-trust-known",
        "The database has no browser session of an unknown trust level",
        Sql("ALTER TABLE runners_browsersession DROP CONSTRAINT session_trust_level"),
        failing_test=f"{_SESSIONS}::test_the_database_refuses_a_session[unknown trust level]",
    ),
    Guard(
        "closed-session-keeps-nothing",
        "The database has no closed browser session with a state",
        Sql("ALTER TABLE runners_browsersession DROP CONSTRAINT session_closed_keeps_nothing"),
        failing_test=f"{_SESSIONS}::test_the_database_refuses_a_session[closed with its state]",
    ),
    Guard(
        "browser-home-of-a-live-process",
        "The temporary folder of a running browser is not removed",
        Patch(
            "runners/browser/pool/temp_home.py",
            "        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
            "        pass\n",
        ),
        failing_test=f"{_BROWSER_HOME}::test_the_home_of_a_running_owner_is_not_removed",
    ),
)

_INVOCATION = (
    Guard(
        "argument-schema",
        "Arguments that do not fit the tool's schema are refused with the place of the error",
        Patch("runners/invocation/arguments.py", "        check(validator, repaired)\n", ""),
        failing_test=f"{_TOOL_CALLS}::test_wrong_arguments_are_refused_before_the_call_starts[rest]",
    ),
    Guard(
        "scope-for-writes",
        "A tool that changes something needs the scope tools:write",
        Patch(
            "runners/invocation/arguments.py",
            'return "tools:read" if tool.effect == Effect.READ else "tools:write"',
            'return "tools:read"',
        ),
        failing_test=f"{_TOOL_CALLS}::test_read_tools_need_the_read_scope_and_write_tools_the_write_scope",
    ),
    Guard(
        "call-without-time",
        "A call for which no time is left is not started",
        Patch("runners/invocation/invoke.py", "if limit_ms <= 0:", "if False:"),
        failing_test=f"{_INTERRUPTED}::test_a_write_whose_deadline_passed_before_it_started_is_not_done",
    ),
    Guard(
        "call-time-limit",
        "A call ends at the time limit of its tool, also if its run has more time",
        Patch(
            "runners/invocation/invoke.py",
            "deadline = min(ctx.deadline, time.monotonic() + tool.timeout_ms / 1000)",
            "deadline = ctx.deadline",
        ),
        failing_test=f"{_INTERRUPTED}::test_a_call_ends_at_the_time_limit_of_its_tool",
    ),
    Guard(
        "finished-write-reported",
        "A write that ends after its caller was canceled is reported as done",
        Patch(
            "runners/invocation/invoke.py",
            "        if working.cancelled() or working.exception() is not None:\n    ",
            "",
        ),
        failing_test=f"{_INTERRUPTED}::test_a_write_whose_caller_is_cancelled_is_awaited_and_reported_as_done",
    ),
    Guard(
        "write-once",
        "A write that was in flight when its worker was lost is not repeated",
        Patch(
            "runners/workspace/tools/write_to_file.py",
            "effect=Effect.ONCE,",
            "effect=Effect.AT_LEAST_ONCE,",
        ),
        failing_test=f"{_STEP_CALLS}::test_a_write_interrupted_by_a_lost_worker_is_not_repeated",
    ),
)

GUARDS = (
    *_PATHS,
    *_WRITES,
    *_WORKSPACE_POLICY,
    *_SCRIPTS,
    *_TARGETS,
    *_GATEWAY,
    *_DOCKER_RUNNER,
    *_NETWORK,
    *_BROWSER,
    *_INVOCATION,
    *own_browser.RUNNERS,
)
