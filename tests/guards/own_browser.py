"""Guards of work in a person's own browser; each part's module includes its own."""

from __future__ import annotations

from tests.guards.guard import Guard, Patch

_AGENT = "tests/runs/agent/test_own_browser.py"
_CHOICE = "tests/runners/test_choice_of_own_browser.py"
_ACTIONS = "tests/runners/invocation/test_own_browser.py"
_SOCKET = "tests/contract/test_own_browser.py"
_FILES = "tests/artifacts/test_browser_files.py"
_UNITS = "tests/runners/plugin/test_extension_units.py::test_the_units_of_the_extension_pass"
_EXTENSION = "runners/plugin/extension"

DECISIONS = (
    Guard(
        "own-browser-general-rules",
        "A rule that allows a tool anywhere does not allow it in a person's own browser",
        Patch(
            "decisions/authorization/policy.py",
            old="found = [rule for rule in found if not rule.allows_anywhere]",
            new="pass",
        ),
        failing_test=f"{_AGENT}::test_a_rule_that_allows_counts_if_it_names_the_own_browser[-True]",
    ),
    Guard(
        "own-browser-confirmed-origin",
        "A confirmation of a change in a person's own browser is for the page's origin",
        Patch("decisions/authorization/authorize.py", old="if self.origin:", new="if False:"),
        failing_test=f"{_AGENT}::test_a_confirmation_is_for_the_page_that_was_shown",
    ),
)

RUNNERS = (
    Guard(
        "extension-own-input-once",
        "An announced input event explains one event of the page; a second one is a person's",
        Patch(
            f"{_EXTENSION}/expected_input.js",
            old="if (event) withdraw(tabId, [event]);",
            new="",
        ),
        failing_test=f"{_UNITS}[expected_input]",
    ),
    Guard(
        "extension-takeover-holds",
        "A status that the server sent before it knew of a takeover does not end it",
        Patch(
            f"{_EXTENSION}/takeover/task_control.js",
            old="if (!this.known(taskId).waits) changes.isTaken",
            new="changes.isTaken",
        ),
        failing_test=f"{_UNITS}[task_control]",
    ),
    Guard(
        "extension-takeover-refused",
        "A person keeps the page when the server refuses the takeover",
        Patch(
            f"{_EXTENSION}/takeover/task_control.js",
            old="|| (this.isTakenOver(taskId) && !isConflict)",
            new="",
        ),
        failing_test=f"{_UNITS}[task_control]",
    ),
    Guard(
        "extension-overlay-removed",
        "A page that keeps removing the overlay pauses its task",
        Patch(
            f"{_EXTENSION}/task_ui.js",
            old="if (!isKnown && this.isWatched(taskId))",
            new="if (false)",
        ),
        failing_test=f"{_UNITS}[overlay_loss]",
    ),
    Guard(
        "extension-encrypted-server",
        "The extension pairs with a server on another machine over https only",
        Patch(
            f"{_EXTENSION}/pairing.js",
            old='if (url.protocol !== "https:" && !isLoopback(url.hostname))',
            new="if (false)",
        ),
        failing_test=f"{_UNITS}[pairing]",
    ),
    Guard(
        "extension-expected-origin",
        "The extension gives no input to a page of another origin than the one that was allowed",
        Patch(
            f"{_EXTENSION}/actions/context.js",
            old="refuseOtherOrigin(url, expectedOrigin);",
            new="",
        ),
        failing_test=f"{_UNITS}[expected_origin]",
    ),
    Guard(
        "own-browser-owner",
        "A caller finds only the browsers that it paired itself",
        Patch(
            "runners/own_browsers.py",
            old="        principal_id=caller.principal_id,\n",
            new="",
        ),
        failing_test=f"{_CHOICE}::test_nobody_elses_browser_is_found[principal]",
    ),
    Guard(
        "own-browser-workspace",
        "A caller finds only the browsers of its workspace",
        Patch(
            "runners/own_browsers.py",
            old="        workspace_id=caller.workspace_id,\n",
            new="",
        ),
        failing_test=f"{_CHOICE}::test_nobody_elses_browser_is_found[workspace]",
    ),
    Guard(
        "own-browser-revoked",
        "A browser that was revoked is not used",
        Patch("runners/own_browsers.py", old="        revoked_at__isnull=True,\n", new=""),
        failing_test=f"{_CHOICE}::test_a_revoked_browser_is_not_found",
    ),
    Guard(
        "own-browser-result-form",
        "A result of a person's own browser has the form of its action",
        Patch(
            "runners/invocation/own_browser.py",
            old="result = action.result.model_validate(",
            new="result = action.result.model_construct(None, **",
        ),
        failing_test=f"{_ACTIONS}::test_a_result_of_another_form_is_refused[result0]",
    ),
    Guard(
        "own-browser-own-pages",
        "No page of the product is opened in a person's own browser",
        Patch(
            "runners/invocation/own_browser.py",
            old='        refuse_own_page(model.url or "")\n',
            new="",
        ),
        failing_test=f"{_ACTIONS}::test_the_products_own_pages_are_neither_opened_nor_read"
        "[http://localhost:8000/]",
    ),
    Guard(
        "own-browser-own-pages-reached",
        "No page of the product that a person's own browser shows is read",
        Patch(
            "runners/invocation/own_browser.py",
            old="    refuse_own_page(url)\n",
            new="",
        ),
        failing_test=f"{_ACTIONS}::test_the_products_own_pages_are_neither_opened_nor_read"
        "[http://localhost:8000/]",
    ),
    Guard(
        "own-browser-address",
        "A remote caller opens no private address in a person's own browser",
        Patch(
            "runners/invocation/own_browser.py",
            old="check_address(model.url, ctx.trust)",
            new="model.url",
        ),
        failing_test=f"{_ACTIONS}::test_a_remote_caller_reaches_no_private_address_of_the_person",
    ),
    Guard(
        "own-browser-private-pages",
        "A remote caller reads no private page in a person's own browser, whatever the result is",
        Patch(
            "runners/invocation/own_browser.py",
            old="        _check_origins(action, reply, ctx)\n",
            new="",
        ),
        failing_test=f"{_ACTIONS}::test_a_remote_caller_reads_nothing_of_a_private_page"
        "[url-browser_find_text]",
    ),
    Guard(
        "own-browser-sent-once",
        "An action that a lost worker may have sent is not sent again",
        Patch("runners/invocation/own_browser.py", old="if is_sent:", new="if False:"),
        failing_test="tests/runs/execution/test_lost_worker_of_own_browser.py::"
        "test_the_next_worker_collects_the_answer_and_sends_nothing_again[unanswered]",
    ),
)

RUNS = (
    Guard(
        "own-browser-first-change",
        "A person confirms a task's first change on an origin in the own browser",
        Patch(
            "runs/admission/own_browser.py",
            old="if TaskOrigin.objects.filter(task_id=run.task_id, origin=origin).exists():",
            new="if True:",
        ),
        failing_test=f"{_AGENT}::"
        "test_the_first_change_on_an_origin_waits_for_a_person_and_further_ones_do_not",
    ),
    Guard(
        "own-browser-each-submit",
        "A person confirms each submit in the own browser",
        Patch(
            "runs/admission/own_browser.py",
            old="reason = _each_time(request.tool, request.args, element)",
            new='reason = ""',
        ),
        failing_test=f"{_AGENT}::test_a_submit_is_asked_each_time[submit]",
    ),
    Guard(
        "own-browser-unseen-element",
        "A click on what no observation shows counts as a submit",
        Patch(
            "runs/admission/own_browser.py",
            old="and not element.line,",
            new="and False,",
        ),
        failing_test=f"{_AGENT}::test_a_submit_is_asked_each_time[unseen]",
    ),
    Guard(
        "own-browser-drag",
        "A drag of what submits a form, which is a click if it is short, counts as a submit",
        Patch(
            "runs/admission/own_browser.py",
            old="is_click = tool in (CLICK.name, DRAG.name)",
            new="is_click = tool == CLICK.name",
        ),
        failing_test=f"{_AGENT}::test_a_submit_is_asked_each_time[drag]",
    ),
    Guard(
        "own-browser-no-forged-element",
        "A text of the page counts as no element that an observation shows",
        Patch("runs/admission/shown_page.py", old='rf"^\\[', new='rf"\\['),
        failing_test="tests/runs/admission/test_shown_page.py::"
        "test_a_text_of_the_page_is_no_element[escaped]",
    ),
    Guard(
        "own-browser-origin-by-now",
        "A change is judged by the origin that the tab shows by now",
        Patch(
            "runs/admission/own_browser.py",
            old="if shown is not None and origin_of(shown) != origin:",
            new="if False:",
        ),
        failing_test=f"{_AGENT}::test_a_change_is_asked_on_the_origin_that_the_tab_shows_by_now",
    ),
    Guard(
        "own-browser-bound-origin",
        "A change goes to the own browser with the origin for which it was allowed",
        Patch(
            "runs/execution/step_context.py",
            old="            expected_origin=request.origin,\n",
            new="",
        ),
        failing_test=f"{_AGENT}::test_a_change_goes_to_the_browser_with_the_origin_that_was_judged",
    ),
    Guard(
        "own-browser-its-tasks",
        "A browser takes over, gives back and stops only the tasks that act in it",
        Patch(
            "runs/live/own_browser.py",
            old="        selected_client_id=client_id,\n",
            new="",
        ),
        failing_test=f"{_SOCKET}::test_a_browser_changes_no_task_that_does_not_act_in_it[stop]",
    ),
    Guard(
        "own-browser-state-readers",
        "Only the caller who paired a browser sees its windows and tabs",
        Patch(
            "runs/live/own_browser.py",
            old="return own_browsers(Caller.of(principal)).filter(id=client_id).first()",
            new="return PluginClient.objects.filter(id=client_id).first()",
        ),
        failing_test=f"{_SOCKET}::test_readers_of_the_task_follow_the_state_of_their_own_browser",
    ),
)

TRANSPORTS = (
    Guard(
        "own-browser-result-hash",
        "A result that a browser sent has the SHA-256 that it named",
        Patch(
            "artifacts/browser_files.py",
            old=" or hashlib.sha256(data).hexdigest() != sha256:",
            new=":",
        ),
        failing_test=f"{_FILES}::test_a_result_is_deleted_if_it_is_not_as_named[9-{'0' * 64}]",
    ),
    Guard(
        "own-browser-file-signature",
        "A file for a page is read only by the address that the server signed",
        Patch(
            "artifacts/browser_files.py",
            old="if not claims.isascii() or not mac_matches(_PURPOSE, claims.encode(), proof):",
            new="if not proof:",
        ),
        failing_test=f"{_FILES}::test_a_shared_file_needs_its_signature_and_expires",
    ),
    Guard(
        "own-browser-file-expiry",
        "The address of a file for a page expires",
        Patch(
            "artifacts/browser_files.py",
            old="if int(expires) <= datetime.now(UTC).timestamp():",
            new="if False:",
        ),
        failing_test=f"{_FILES}::test_a_shared_file_needs_its_signature_and_expires",
    ),
)
