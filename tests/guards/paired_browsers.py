"""Guards of paired browsers: who may connect, what they may report, who sees what they have open."""

from __future__ import annotations

from tests.guards.guard import Guard, Patch

_SOCKET = "tests/contract/test_plugin_socket.py"
_CALLS = "tests/runners/plugin/test_calls.py"
_ADMIN = "tests/runners/admin/test_paired_browsers.py"
_TYPED = "tests/runs/admin/test_typed_passwords.py"
_WEBSOCKET = "runs/websockets/plugin.py"
_REGISTRY = "runners/plugin/pairing/registry.py"
_TICKETS = "runners/plugin/pairing/tickets.py"
_SESSION = "runners/plugin/connections/session.py"

TRANSPORTS = (
    Guard(
        "plugin-origin",
        "A page cannot open the WebSocket of paired browsers",
        Patch(
            _WEBSOCKET,
            old="    return origin is None or origin in settings.PLUGIN_ORIGINS\n",
            new="    return True\n",
        ),
        failing_test=f"{_SOCKET}::test_a_page_of_another_origin_is_refused_before_the_handshake",
    ),
    Guard(
        "plugin-ticket-once",
        "A ticket pairs one browser",
        Patch(
            _TICKETS,
            old="if ticket is None or not valid.delete()[0]:",
            new="if ticket is None:",
        ),
        failing_test=f"{_SOCKET}::test_a_ticket_pairs_one_browser",
    ),
    Guard(
        "plugin-ticket-expiry",
        "A ticket pairs a browser within five minutes only",
        Patch(
            _TICKETS,
            old="digest__in=digests, expires_at__gt=datetime.now(UTC))",
            new="digest__in=digests)",
        ),
        failing_test=f"{_SOCKET}::test_an_expired_ticket_and_one_of_a_revoked_token_are_refused",
    ),
    Guard(
        "plugin-digests",
        "The reconnect secret of a browser is not stored",
        Patch(
            "runners/plugin/pairing/reconnect_secrets.py",
            old="    return secret, mac(_PURPOSE, secret.encode())\n",
            new="    return secret, secret[:64]\n",
        ),
        failing_test=f"{_SOCKET}::test_each_connection_gets_a_new_secret",
    ),
    Guard(
        "plugin-old-secret",
        "A secret that the browser has replaced is refused",
        Patch(
            _REGISTRY,
            old="    rows.filter(previous_digest__isnull=False).update(previous_digest=None)\n",
            new="    del rows\n",
        ),
        failing_test=f"{_SOCKET}::test_a_secret_that_was_used_before_revokes_the_browser",
    ),
    Guard(
        "plugin-copied-secret",
        "An earlier secret revokes the browser, because it was copied",
        Patch(
            _REGISTRY,
            old='        revoke_client(client, actor="plugin", reason="secret_reused")\n',
            new="",
        ),
        failing_test=f"{_SOCKET}::test_a_secret_that_was_used_before_revokes_the_browser",
    ),
    Guard(
        "plugin-guessed-secret",
        "A guessed secret does not revoke a browser",
        Patch(
            "runners/plugin/pairing/reconnect_secrets.py",
            old='return "earlier" if is_genuine and int(generation)',
            new='return "earlier" if int(generation)',
        ),
        failing_test=f"{_SOCKET}::test_a_guessed_secret_does_not_revoke_the_browser",
    ),
    Guard(
        "plugin-revoked-token",
        "A browser is disconnected when the token that paired it is revoked",
        Patch(
            _REGISTRY,
            old=" or not _may_stay(client, credentials):",
            new=":",
        ),
        failing_test=f"{_SOCKET}::"
        "test_a_browser_is_disconnected_when_the_token_that_paired_it_is_revoked",
    ),
    Guard(
        "plugin-flood",
        "A browser that floods the server is disconnected",
        Patch(
            _WEBSOCKET,
            old='            if not self._budget.take(len(str(event["text"]))):\n',
            new="            if False:\n",
        ),
        failing_test=f"{_SOCKET}::test_binary_a_large_frame_and_a_flood_close_the_connection",
    ),
    Guard(
        "plugin-pending",
        "Connections without a credential are limited",
        Patch(
            _WEBSOCKET,
            old="        if not has_room or hub.count >= SOCKETS_MAX:\n",
            new="        if hub.count >= SOCKETS_MAX:\n",
        ),
        failing_test=f"{_SOCKET}::test_too_many_connections_without_a_credential_are_refused",
    ),
    Guard(
        "plugin-first-frame",
        "The first message of a connection is small",
        Patch(
            _WEBSOCKET,
            old="_text_of(event, messages.FIRST_FRAME_BYTES)",
            new="_text_of(event)",
        ),
        failing_test=f"{_SOCKET}::test_a_large_first_message_closes_the_connection",
    ),
    Guard(
        "plugin-first-type",
        "A first message is validated only if it is an activation",
        Patch(
            "runners/plugin/protocol/messages.py",
            old='    if not isinstance(first, dict) or first.get("type") != "activate_extension":\n',
            new="    if not isinstance(first, dict):\n",
        ),
        failing_test=f"{_SOCKET}::test_a_first_message_of_another_type_is_not_validated",
    ),
    Guard(
        "plugin-ticket-without-redis",
        "A ticket is used up only when the browser can be connected",
        Patch(_WEBSOCKET, old="    await hub.reserve(client_id)\n", new=""),
        failing_test=f"{_SOCKET}::test_a_ticket_is_not_used_up_while_redis_is_unavailable",
    ),
    Guard(
        "plugin-other-browsers-result",
        "A browser cannot report the result of another browser's action",
        Patch(
            _SESSION,
            old="is_mine = call.client_id == self._connection.client_id",
            new="is_mine = True",
        ),
        failing_test=f"{_CALLS}::test_a_browser_cannot_answer_for_another_one",
    ),
    Guard(
        "plugin-result-tab",
        "A result about another tab than the action's is not accepted",
        Patch(
            _SESSION,
            old="        is_of_tab = _is_of_tab(call, message)\n",
            new="        is_of_tab = True\n",
        ),
        failing_test=f"{_CALLS}::test_a_result_about_another_tab_than_the_actions_is_refused",
    ),
    Guard(
        "plugin-late-result",
        "A result that comes after the action timed out is not accepted",
        Patch(_SESSION, old="        if call.has_ended:\n", new="        if False:\n"),
        failing_test=f"{_CALLS}::"
        "test_an_action_without_result_times_out_and_its_late_result_is_ignored",
    ),
    Guard(
        "typed-password",
        "A text for a password field is masked where a person confirms it",
        Patch(
            "runs/admission/shown_page.py",
            old="    if request.tool == TYPE.name and _is_secret(",
            new="    if request.tool == TYPE.name and not _is_secret(",
        ),
        failing_test=f"{_TYPED}::test_a_password_is_confirmed_unseen_and_typed_as_it_is[command]",
    ),
    Guard(
        "typed-text-on-pages",
        "The pages of a run show no typed text",
        Patch(
            "runners/actions/typed_text.py",
            old='        shown["args"] = without_text(args)\n',
            new="        pass\n",
        ),
        failing_test=f"{_TYPED}::test_a_password_is_on_no_page_of_its_run_and_in_no_record",
    ),
    Guard(
        "plugin-own-browsers",
        "A caller sees and removes only its own browsers",
        Patch(
            "runners/plugin/pairing/selectors.py",
            old="principal_id=principal.id, revoked_at",
            new="revoked_at",
        ),
        failing_test=f"{_SOCKET}::test_a_caller_sees_and_removes_only_its_own_browsers",
    ),
    Guard(
        "plugin-tabs-in-the-admin",
        "Only the person who paired a browser sees in the admin what it has open",
        Patch(
            "runners/admin/paired_browsers.py",
            old="            may_look = _may_look(request, client)\n",
            new="            may_look = True\n",
        ),
        failing_test=f"{_ADMIN}::"
        "test_another_superuser_does_not_see_what_a_persons_browser_has_open",
    ),
    Guard(
        "plugin-removal",
        "Removing a browser in the admin needs the permission, or to have paired it",
        Patch(
            "runners/admin/paired_browsers.py",
            old="        if not _may_remove(request, client):\n",
            new="        if False:\n",
        ),
        failing_test=f"{_ADMIN}::"
        "test_removing_a_browser_needs_the_permission_or_the_one_who_paired_it",
    ),
)
