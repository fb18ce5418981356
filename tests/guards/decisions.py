"""Guards of `decisions` and `config`: authorization, the audit log, secrets, identity, validation,
the REST frame, the Continuity API, admin pages, settings and database constraints.
"""

from __future__ import annotations

from tests.guards import own_browser
from tests.guards.guard import Guard, Patch, Sql

_CONTRACT = "tests/contract"

_POLICY = "decisions/authorization/policy.py"
_RULES = "decisions/authorization/policy_rules.py"
_AUTHORIZE = "decisions/authorization/authorize.py"
_CONFIRMATIONS = "decisions/authorization/confirmations.py"
_SEALED = "decisions/authorization/sealed_arguments.py"
_BINDING = "decisions/authorization/changes.py"
_OUTDATED = "tests/decisions/authorization/test_outdated_decisions.py"
_BOUND = "tests/decisions/authorization/test_approvals_bind_targets_and_secrets.py"
_FORGED = "tests/decisions/authorization/test_forged_answers.py"
_EVERYTHING = "tests/decisions/authorization/test_approvals_show_everything.py"
_LAST_PAGE = "test_a_long_command_is_confirmed_with_the_digest_of_its_last_page_alone"
_PREVIEWS = "tests/runs/direct_calls/test_confirmed_previews.py"
_BY_TOKEN = "decisions/authorization/confirm_by_token.py"
_LINK_PAGE = "decisions/views/confirmation_page.py"
_RECORD = "decisions/audit/record.py"
_VERIFY = "decisions/audit/verify.py"
_SEALER = "decisions/audit/sealer.py"
_STORED = "decisions/audit/stored.py"
_CHECKPOINTS = "decisions/audit/checkpoints.py"
_QUERY = "decisions/audit/query.py"
_BUNDLE = "decisions/audit/bundle.py"
_VERIFY_BUNDLE = "decisions/audit/verify_bundle.py"
_PRINCIPALS = "decisions/identity/principals.py"
_TOKENS = "decisions/identity/tokens.py"
_LOGIN = "decisions/identity/one_time_login.py"
_KEYS = "decisions/security/keys.py"
_JSON = "decisions/validation/json_input.py"
_DRF = "decisions/api/drf.py"
_VIEW = "decisions/api/view.py"
_ERRORS = "config/api_errors.py"
_SETTINGS = "config/settings.py"
_OBJECTS = "decisions/continuity/objects.py"
_OUTCOMES = "decisions/continuity/outcomes.py"
_STATE = "decisions/continuity/state.py"
_OWNER = "decisions/continuity/owner.py"
_CHAT = "decisions/chat/services.py"
_ANSWERS = "decisions/chat/answers.py"
_CONVERSATION = "decisions/chat/conversation.py"
_CHANGES = "decisions/chat/concurrent_changes.py"
_FORMATTING = "decisions/presentation/formatting.py"

_SUBMITS = "tests/decisions/authorization/test_policy_of_submits.py"
_RULE_CHANGES = f"{_SUBMITS}::test_a_new_changed_or_retired_rule_applies_to_the_next_submit"
_RUNNER_DEFAULTS = (
    "tests/runners/gateway/test_calls.py::test_a_direct_call_without_a_matching_rule_is_denied"
)

_ENDED_TOKENS = "tests/contract/test_ended_tokens.py"

_RULE_ORDER = (
    Guard(
        "policy-deny-wins",
        "A rule that denies a call wins over a narrower rule that allows it",
        Patch(
            _POLICY,
            old='key=lambda rule: (rule.verdict.decision == "deny", rule.rank)',
            new="key=lambda rule: rule.rank",
        ),
        failing_test=f"{_SUBMITS}::test_a_deny_rule_refuses_a_submit_that_a_narrower_rule_allows",
    ),
    Guard(
        "policy-narrowest-scope",
        "Of two rules that do not deny, the one with the narrower scope wins",
        Patch(_POLICY, old="rank = (_BREADTH[row.scope], row.tool", new="rank = (0, row.tool"),
        failing_test=f"{_SUBMITS}::test_the_rule_with_the_narrowest_scope_decides_on_a_submit",
    ),
    Guard(
        "policy-narrowest-match",
        "Of two rules with one scope, the one about the call's tool and target wins",
        Patch(
            _POLICY,
            old='rank = (_BREADTH[row.scope], row.tool != ANY_TOOL, row.target_id != "")',
            new="rank = (_BREADTH[row.scope], False, False)",
        ),
        failing_test=f"{_SUBMITS}::test_the_rule_about_the_template_decides_on_a_submit",
    ),
    Guard(
        "policy-scope-of-rules",
        "A rule of one workspace does not apply to calls of another",
        Patch(
            _POLICY,
            old="if rule.scope_id in self.callers and rule.target_id in targets",
            new="if rule.target_id in targets",
        ),
        failing_test=f"{_SUBMITS}::test_a_rule_of_another_workspace_does_not_apply_to_a_submit",
    ),
    Guard(
        "policy-target-of-rules",
        "A rule about one target does not apply to calls on another",
        Patch(
            _POLICY,
            old="if rule.scope_id in self.callers and rule.target_id in targets",
            new="if rule.scope_id in self.callers",
        ),
        failing_test=f"{_SUBMITS}::test_a_rule_about_another_template_does_not_apply_to_a_submit",
    ),
    Guard(
        "policy-high-risk-tools",
        "Without a rule, a high-risk tool needs a confirmation",
        Patch(_POLICY, old="if tool in HIGH_RISK:", new="if False:"),
        failing_test=_RUNNER_DEFAULTS,
    ),
    Guard(
        "policy-tools-of-targets",
        "Without a rule, a tool of an execution target is denied",
        Patch(
            _POLICY,
            old="if target_id is not None and target_id.startswith(TARGET_PREFIX):",
            new="if False:",
        ),
        failing_test=_RUNNER_DEFAULTS,
    ),
    Guard(
        "policy-rules-are-read-again",
        "A process reads the rules again when they have changed",
        Patch(_POLICY, old="if cached.stamp != stamp:", new="if cached.stamp is None:"),
        failing_test=_RULE_CHANGES,
    ),
    Guard(
        "policy-rule-reason",
        "A rule is created or changed only with a reason",
        Patch(_RULES, old="if not fields.reason.strip():", new="if False:"),
        failing_test="tests/decisions/authorization/test_policy.py::test_an_invalid_rule_is_refused[fields9]",
    ),
    Guard(
        "policy-new-rule",
        "A new rule applies from the next call on",
        Patch(
            _RULES,
            old='_record("policy_rule.created", actor, rule, owner)\n        _renew_stamp()',
            new='_record("policy_rule.created", actor, rule, owner)',
        ),
        failing_test=_RULE_CHANGES,
    ),
    Guard(
        "policy-changed-rule",
        "A changed rule applies from the next call on",
        Patch(
            _RULES,
            old="before=old.recorded_fields())\n        _renew_stamp()",
            new="before=old.recorded_fields())",
        ),
        failing_test=_RULE_CHANGES,
    ),
    Guard(
        "policy-retired-rule",
        "A retired rule does not apply to the next call",
        Patch(
            _RULES,
            old='or ("", ""))\n        _renew_stamp()',
            new='or ("", ""))',
        ),
        failing_test=_RULE_CHANGES,
    ),
    Guard(
        "policy-cached-in-workers",
        "A worker makes no call by cached rules that have changed since",
        Patch(
            _POLICY,
            old="""Precondition(f"COALESCE(({_STAMP}), '') = %s", (self.stamp or "",))""",
            new='Precondition("TRUE", ())',
        ),
        failing_test="tests/runs/admission/test_cached_admission_of_runner_calls.py::test_a_new_deny_rule_applies_to_the_next_call",
    ),
)

_DIRECT = "tests/decisions/authorization/test_confirmed_calls.py"
_DENIED = "tests/decisions/authorization/test_policy_of_apis.py::test_a_denied_call_changes_nothing"
_CONFIRMED_ONCE = (
    "tests/decisions/authorization/test_policy_of_apis.py::test_a_confirmed_call_is_performed_once"
)
_RIGHTS = "tests/decisions/authorization/test_confirmation_rights.py"
_USED_MEANWHILE = f"{_RIGHTS}::test_an_approval_that_another_call_uses_first_is_not_used_again"

_CALLS = (
    Guard(
        "denied-call",
        "A call that policy denies is not made",
        Patch(_AUTHORIZE, old='if authorization.decision == "deny":', new="if False:"),
        failing_test=f"{_DIRECT}::test_a_denied_call_is_refused_and_audited",
    ),
    Guard(
        "unconfirmed-call",
        "A call that waits for a confirmation is not made (its admission refuses it, and an"
        " approval that is not confirmed cannot be used)",
        (
            Patch(
                _AUTHORIZE,
                old='if authorization.decision == "confirm" and authorization.confirmation is not'
                " None:",
                new="if False:",
            ),
            Patch(
                _AUTHORIZE,
                old="if approval is not None and not confirmations.mark_used(approval):",
                new="if False:",
            ),
        ),
        failing_test=f"{_DIRECT}::test_the_call_does_not_run_and_creates_one_confirmation",
    ),
    Guard(
        "approval-is-marked-as-used",
        "A call that uses an approval which another call used is not made",
        Patch(
            _AUTHORIZE,
            old="if approval is not None and not confirmations.mark_used(approval):",
            new="if False:",
        ),
        failing_test=_USED_MEANWHILE,
    ),
    Guard(
        "answer-has-a-mac",
        "A confirmation that is confirmed by its status alone permits nothing",
        Patch(
            "decisions/authorization/genuine_answers.py",
            old='return mac_matches(_PURPOSE, _message(confirmation, answer), confirmation.answer_mac or "")',
            new="return True",
        ),
        failing_test=f"{_FORGED}::test_a_forged_confirmation_permits_no_direct_call",
    ),
    Guard(
        "answer-of-its-call",
        "The answer to one call is none to another",
        Patch(
            "decisions/authorization/genuine_answers.py",
            old="[confirmation.id, _call(confirmation.decision), answered]",
            new="[answered]",
        ),
        failing_test=f"{_FORGED}::test_a_forged_confirmation_permits_no_step[copy_answer-False]",
    ),
    Guard(
        "approval-of-its-caller",
        "An approval whose row was moved to the call of another caller permits nothing",
        Patch(
            _AUTHORIZE,
            old="return not (is_callers and is_confirmed(confirmation))",
            new="return not is_confirmed(confirmation)",
        ),
        failing_test=f"{_FORGED}::test_an_approval_of_another_caller_permits_nothing",
    ),
    Guard(
        "approval-of-a-run-is-genuine",
        "A run of a direct call is not permitted by a forged approval",
        Patch(
            _CONFIRMATIONS,
            old="return any(is_confirmed(confirmation) for confirmation in used)",
            new="return used.exists()",
        ),
        failing_test=f"{_FORGED}::test_a_run_that_names_a_forged_approval_waits_for_a_person",
    ),
    Guard(
        "approval-is-used-once",
        "An approval that was used cannot be used again",
        Patch(
            _CONFIRMATIONS,
            old="pk=confirmation.pk, status=ConfirmationStatus.CONFIRMED, used_at__isnull=True",
            new="pk=confirmation.pk, status=ConfirmationStatus.CONFIRMED",
        ),
        failing_test=_USED_MEANWHILE,
    ),
    Guard(
        "approval-arguments",
        "An approval of a direct call does not permit other arguments (the identity of the call and"
        " the digest of the decision both test it)",
        (
            Patch(
                _AUTHORIZE,
                old='tuple(_digests("call", *caller, one)[age] for age, one in'
                " enumerate(self.digests))",
                new='_digests("call", *caller)',
            ),
            Patch(
                _AUTHORIZE,
                old="if confirmation.decision.subject_digest not in call.subject_digests:",
                new="if False:",
            ),
        ),
        failing_test=f"{_DIRECT}::test_different_arguments_need_a_confirmation_of_their_own",
    ),
    Guard(
        "approval-arguments-of-steps",
        "An approval of a step's call does not permit other arguments",
        Patch(
            _AUTHORIZE,
            old="if confirmation.decision.subject_digest not in call.subject_digests:",
            new="if False:",
        ),
        failing_test="tests/runs/execution/test_answers_to_suspended_runs.py::test_changed_arguments_invalidate_the_approval",
    ),
    Guard(
        "approval-target-state",
        "An approval does not permit the call on its target after a change",
        Patch(
            _AUTHORIZE,
            old='return _digests("subject", self.tool, self.target_id, self.args, self.target_state)',
            new="return self.digests",
        ),
        failing_test=f"{_BOUND}::test_an_approved_call_is_not_made_at_another_endpoint",
    ),
    Guard(
        "answer-target-state",
        "An answer to a decision whose target was changed after it was shown is refused",
        Patch(
            _BINDING,
            old="if not has_same_target(decision):",
            new="if False:",
        ),
        failing_test=f"{_BOUND}::test_the_digest_of_the_old_target_confirms_nothing",
    ),
    Guard(
        "approval-key",
        "An approval does not count for the same call under another idempotency key",
        Patch(
            _AUTHORIZE,
            old="caller = self.principal_id, self.workspace_id, self.key",
            new='caller = self.principal_id, self.workspace_id, ""',
        ),
        failing_test="tests/runs/direct_calls/test_tool_calls.py::"
        "test_over_rest_a_waiting_call_answers_202_and_its_key_identifies_it",
    ),
    Guard(
        "approval-lapses",
        "An approval that the caller did not use in time needs a new confirmation",
        Patch(
            _AUTHORIZE,
            old="if authorization.confirmation is not None and"
            " _has_lapsed(authorization.confirmation):",
            new="if False:",
        ),
        failing_test=f"{_DIRECT}::test_an_unused_approval_expires_and_needs_a_new_confirmation",
    ),
    Guard(
        "approval-without-a-key",
        "Without an idempotency key, a used approval does not count for the next call",
        Patch(_AUTHORIZE, old="if not is_spent:", new="if True:"),
        failing_test=f"{_DIRECT}::test_without_a_key_an_approval_is_valid_for_one_call",
    ),
    Guard(
        "refused-call",
        "A call that a person refused stays refused",
        Patch(
            _AUTHORIZE,
            old="denied = confirmation.status in _NEGATIVE",
            new="denied = False",
        ),
        failing_test=f"{_DIRECT}::test_a_refused_call_stays_refused",
    ),
    Guard(
        "refused-call-without-its-rule",
        "A person's refusal holds after the rule was retired",
        Patch(
            _AUTHORIZE,
            old="refused = confirmation if confirmation.status == ConfirmationStatus.REFUSED else"
            " None",
            new="refused = None",
        ),
        failing_test="tests/runs/execution/test_answers_to_suspended_runs.py::test_a_refusal_holds_after_its_rule_is_retired",
    ),
    Guard(
        "shown-arguments-are-masked",
        "The arguments in the row of a decision, which lists and records show, contain no secret",
        Patch(_AUTHORIZE, old="storable(redact_value(dict(args)))", new="storable(dict(args))"),
        failing_test=f"{_RIGHTS}::test_the_recorded_arguments_of_a_decision_contain_no_secret",
    ),
    Guard(
        "policy-of-chat",
        "Policy is evaluated before a chat message is decided on",
        Patch(
            _CHAT,
            old="""approval = admit_call(
        tool_call_request(principal, "continuity_chat", call, key=call["idempotency_key"])
    )""",
            new="approval = None",
        ),
        failing_test=f"{_DENIED}[POST chat]",
    ),
    Guard(
        "policy-of-objects",
        "Policy is evaluated before a Shell or a success path is written",
        Patch(_OBJECTS, old="approval = admit_call(use)", new="approval = None"),
        failing_test=f"{_DENIED}[POST user/alice/objects/shell]",
    ),
    Guard(
        "policy-of-outcomes",
        "Policy is evaluated before an outcome is recorded",
        Patch(_OUTCOMES, old="approval = admit_call(use)", new="approval = None"),
        failing_test=f"{_DENIED}[POST decision/{{decided}}/outcome?user_id=alice]",
    ),
    Guard(
        "policy-of-confirmations",
        "Policy is evaluated before an agent confirms with a token",
        Patch(
            _BY_TOKEN,
            old='    _admit(tool_call_request(principal, "continuity_confirm_decision", about))\n',
            new="",
        ),
        failing_test="tests/decisions/authorization/test_policy_of_apis.py::test_no_rule_prevents_people_from_confirming[deny]",
    ),
    Guard(
        "approval-of-chat-is-used",
        "A chat message uses the approval that permits it",
        Patch(_CHAT, old="        use_approval(approval)\n", new=""),
        failing_test=f"{_CONFIRMED_ONCE}[continuity_chat]",
    ),
    Guard(
        "approval-of-an-object-is-used",
        "A write of an object uses the approval that permits it",
        Patch(_OBJECTS, old="                use_approval(approval)\n", new=""),
        failing_test=f"{_CONFIRMED_ONCE}[continuity_put_shell]",
    ),
    Guard(
        "approval-of-an-outcome-is-used",
        "A report of an outcome uses the approval that permits it",
        Patch(_OUTCOMES, old="    use_approval(approval)\n", new=""),
        failing_test=f"{_CONFIRMED_ONCE}[continuity_report_outcome]",
    ),
)

_CONFIRMS = "tests/decisions/authorization/test_confirmations.py"
_REST_CONFIRM = f"{_CONTRACT}/test_rest_confirmations.py"
_PAGES = "tests/decisions/authorization/test_confirmation_channels.py"
_SCOPE_LIMITS = f"{_RIGHTS}::test_the_scope_confirm_is_limited_to_the_workspace_and_its_users"
_WRONG_TOKEN = """    if not mac_matches(
        DIGEST_PURPOSE, token_message(confirmation.decision, token), confirmation.token_digest
    ):"""

_DECIDING = (
    Guard(
        "confirmation-is-decided-once",
        "A decision that a person refused cannot be confirmed afterwards",
        Patch(
            _CONFIRMATIONS,
            old="pk=confirmation.pk, status=ConfirmationStatus.WAITING, expires_at__gt=now",
            new="pk=confirmation.pk, expires_at__gt=now",
        ),
        failing_test=f"{_CONFIRMS}::test_a_person_confirms_or_refuses_once",
    ),
    Guard(
        "confirmation-expires",
        "A decision cannot be confirmed after its time",
        Patch(
            _CONFIRMATIONS,
            old="pk=confirmation.pk, status=ConfirmationStatus.WAITING, expires_at__gt=now",
            new="pk=confirmation.pk, status=ConfirmationStatus.WAITING",
        ),
        failing_test=f"{_PAGES}::test_an_expired_link_shows_that_it_has_expired",
    ),
    Guard(
        "confirmation-expires-when-due",
        "A confirmation does not expire before its time (the selection and the update both test"
        " it)",
        (
            Patch(
                _CONFIRMATIONS,
                old="    status=ConfirmationStatus.WAITING, expires_at__lte=now\n    )\n    for",
                new="    status=ConfirmationStatus.WAITING\n    )\n    for",
            ),
            Patch(
                _CONFIRMATIONS,
                old="pk=confirmation.pk, status=ConfirmationStatus.WAITING, expires_at__lte=now",
                new="pk=confirmation.pk, status=ConfirmationStatus.WAITING",
            ),
        ),
        failing_test=f"{_CONFIRMS}::test_an_undecided_confirmation_expires",
    ),
    Guard(
        "confirmation-of-own-request",
        "A credential cannot confirm its own request",
        Patch(
            _CONFIRMATIONS,
            old='own = by == confirmation.decision.principal_id and how == "api"',
            new="own = False",
        ),
        failing_test=f"{_REST_CONFIRM}::test_a_token_with_the_scope_confirms_a_tool_call_but_not_its_own",
    ),
    Guard(
        "confirmation-of-tool-calls",
        "An agent gets no token with which it could confirm its own tool call",
        Patch(
            _CONFIRMATIONS,
            old="Delivery.OUT_OF_BAND if is_tool_call else delivery or settings.CONFIRM_DELIVERY",
            new="delivery or settings.CONFIRM_DELIVERY",
        ),
        failing_test=f"{_CONFIRMS}::test_a_tool_call_never_has_a_token[tool]",
    ),
    Guard(
        "confirm-token-subject",
        "A token does not confirm a decision that changed since",
        Patch(
            _CONFIRMATIONS,
            old="[decision.pk, decision.user_id, decision.subject_digest, token]",
            new="[decision.pk, decision.user_id, token]",
        ),
        failing_test=f"{_CONFIRMS}::test_a_token_is_invalid_after_its_decision_changed",
    ),
    Guard(
        "confirm-token-user",
        "A token confirms for the user of its decision alone",
        Patch(_BY_TOKEN, old="        decision__user_id=user_id,\n", new=""),
        failing_test=f"{_REST_CONFIRM}::test_every_failure_gets_the_same_answer",
    ),
    Guard(
        "confirm-token-workspace",
        "A token confirms in the workspace of its decision alone",
        Patch(_BY_TOKEN, old="        decision__workspace_id=principal.workspace_id,\n", new=""),
        failing_test=f"{_CONFIRMS}::test_another_workspace_cannot_confirm",
    ),
    Guard(
        "confirm-token-users-of-the-credential",
        "A credential confirms with a token only for users that it may act for",
        Patch(
            _BY_TOKEN,
            old="if not principal.may_act_for(user_id):\n        return None",
            new="if False:\n        return None",
        ),
        failing_test=f"{_CONFIRMS}::test_a_token_is_valid_for_its_own_user_alone",
    ),
    Guard(
        "confirm-token-wrong",
        "A wrong token confirms nothing",
        Patch(_BY_TOKEN, old=_WRONG_TOKEN, new="    if False:"),
        failing_test=f"{_REST_CONFIRM}::test_every_failure_gets_the_same_answer",
    ),
    Guard(
        "confirm-token-wrong-tries",
        "Five wrong tries invalidate a token",
        Patch(_BY_TOKEN, old="if confirmation.wrong_tries >= WRONG_TRIES:", new="if False:"),
        failing_test=f"{_CONFIRMS}::test_five_wrong_tries_invalidate_the_token",
    ),
    Guard(
        "confirm-token-concurrent-tries",
        "Concurrent wrong tries are all counted",
        Patch(
            _BY_TOKEN,
            old='Confirmation.objects.select_for_update(of=("self",)).select_related("decision")',
            new='Confirmation.objects.select_related("decision")',
        ),
        failing_test=f"{_CONFIRMS}::test_concurrent_wrong_tries_are_all_counted",
    ),
    Guard(
        "confirm-token-tries-are-audited",
        "A failed try to confirm is audited",
        Patch(
            _BY_TOKEN,
            old='_record_try(principal, decision_id, how="token", failed=failure, **about)',
            new="del about",
        ),
        failing_test=f"{_CONFIRMS}::test_a_wrong_token_confirms_nothing",
    ),
    Guard(
        "confirm-scope",
        "Without a token, a credential needs the scope confirm",
        Patch(_BY_TOKEN, old="elif CONFIRM not in principal.scopes:", new="elif False:"),
        failing_test=f"{_REST_CONFIRM}::test_an_agent_cannot_confirm_a_tool_call",
    ),
    Guard(
        "confirm-scope-workspace",
        "The scope confirm is limited to the workspace of the credential",
        Patch(
            _BY_TOKEN,
            old="filter(pk=decision_id, workspace_id=principal.workspace_id)",
            new="filter(pk=decision_id)",
        ),
        failing_test=f"{_SCOPE_LIMITS}[workspace]",
    ),
    Guard(
        "confirm-scope-user",
        "The scope confirm confirms for the user of the decision alone",
        Patch(
            _BY_TOKEN,
            old="theirs = decision is not None and decision.user_id in (None, user_id)",
            new="theirs = decision is not None",
        ),
        failing_test=f"{_SCOPE_LIMITS}[user]",
    ),
    Guard(
        "confirm-scope-users-of-the-credential",
        "The scope confirm is limited to the users that the credential may act for",
        Patch(
            _BY_TOKEN,
            old="if not theirs or not principal.may_act_for(user_id):",
            new="if not theirs:",
        ),
        failing_test=f"{_SCOPE_LIMITS}[users of the credential]",
    ),
    Guard(
        "link-signature",
        "A confirmation link with a wrong signature shows and decides nothing",
        Patch(_LINK_PAGE, old="if not is_signed(confirmation_id, signature):", new="if False:"),
        failing_test=f"{_PAGES}::test_a_link_with_a_wrong_signature_decides_nothing",
    ),
    Guard(
        "host-link-needs-staff",
        "Only staff decides by the link of an agent's host",
        Patch(
            _LINK_PAGE,
            old="request.user.is_staff and request.user.has_perm(MAY_DECIDE)",
            new="request.user.has_perm(MAY_DECIDE)",
        ),
        failing_test=f"{_PAGES}::test_former_staff_cannot_use_the_link_of_a_host",
    ),
    Guard(
        "link-tries-are-limited",
        "Wrong signatures add a limited number of audit rows",
        Patch(_LINK_PAGE, old="if recorded < TRIES_RECORDED:", new="if True:"),
        failing_test=f"{_PAGES}::test_wrong_signatures_add_a_limited_number_of_audit_entries",
    ),
    Guard(
        "link-hides-decided-calls",
        "A confirmation link shows the call only while its decision waits",
        Patch(
            "decisions/templates/decisions/confirm_link.html",
            old="      {% if waits %}\n      {% if decision.tool %}",
            new="      {% if True %}\n      {% if decision.tool %}",
        ),
        failing_test=f"{_PAGES}::test_a_link_shows_the_call_only_while_its_decision_waits[confirm]",
    ),
    Guard(
        "link-content-security-policy",
        "The page of a confirmation link runs no script and is not framed",
        Patch(_LINK_PAGE, old='response["Content-Security-Policy"] = (', new="_ = ("),
        failing_test="tests/config/test_page_headers.py::"
        "test_the_page_of_a_confirmation_link_runs_no_script_and_is_not_framed",
    ),
    Guard(
        "shown-text-has-no-invisible-characters",
        "What a person confirms is shown with its invisible characters written out",
        Patch(
            "decisions/presentation/visible_text.py",
            old="return kind in _INVISIBLE_KINDS or char in _INVISIBLE or char in _NOTATION",
            new="return char in _NOTATION",
        ),
        failing_test="tests/decisions/presentation/test_visible_text.py::"
        "test_a_person_sees_a_character_that_reorders_a_text",
    ),
    Guard(
        "shown-text-has-no-look-alikes",
        "A letter that looks like an ASCII one has its code point beside it in a host name",
        Patch(
            "decisions/presentation/look_alikes.py",
            old="return [at for at in letters if is_beside_ascii and _ascii_of(word[at])]",
            new="return []",
        ),
        failing_test="tests/decisions/presentation/test_visible_text.py::"
        "test_a_person_sees_a_letter_that_imitates_another_in_a_host_name",
    ),
    Guard(
        "webhook-arguments-are-visible",
        "A webhook gets the arguments also with every character visible",
        Patch(
            "decisions/authorization/decision_pages.py",
            old="lines = as_lines(parts_of(text))",
            new="lines = text",
        ),
        failing_test="tests/runs/webhooks/test_confirmation_messages.py::"
        "test_a_webhook_gets_the_arguments_also_as_the_page_writes_them",
    ),
    Guard(
        "shown-arguments-are-exact",
        "A person who decides sees the exact arguments, not the masked ones of records",
        Patch(
            _AUTHORIZE,
            old="shown = call.args if call.shown_args is None else call.shown_args",
            new="shown = decision.arguments",
        ),
        failing_test=f"{_EVERYTHING}::test_a_person_sees_the_command_that_is_run[cookie]",
    ),
    Guard(
        "answer-names-what-was-shown",
        "On a page or by command nothing is confirmed without the digest of what was shown",
        Patch(
            _CONFIRMATIONS,
            old='return None if shown is None and how == "api" else NotAsShown(decision.pk)',
            new="return None",
        ),
        failing_test=f"{_EVERYTHING}::{_LAST_PAGE}",
    ),
    Guard(
        "digest-is-on-the-last-page",
        "Only the last page about a call has the digest that confirms it",
        Patch(
            "decisions/authorization/decision_pages.py",
            old='digest if is_last else ""',
            new="digest",
        ),
        failing_test=f"{_EVERYTHING}::{_LAST_PAGE}",
    ),
    Guard(
        "hidden-call-is-denied",
        "A call that needs a confirmation and cannot be shown whole is denied",
        Patch(_AUTHORIZE, old="check_showable(call.tool, call.args)", new="pass"),
        failing_test=f"{_EVERYTHING}::test_a_call_that_cannot_be_shown_whole_is_denied_with_the_reason",
    ),
    Guard(
        "exact-arguments-are-encrypted",
        "The exact arguments of a decision are encrypted in the database",
        (
            Patch(
                _SEALED,
                old="return seal_column(decision, _COLUMN, json.dumps(texts).encode())",
                new="return json.dumps(texts).encode()",
            ),
            Patch(
                _SEALED,
                old="json.loads(unseal_column(decision, _COLUMN))",
                new="json.loads(bytes(decision.sealed_arguments))",
            ),
        ),
        failing_test=f"{_EVERYTHING}::test_records_of_the_call_keep_masks_and_the_exact_arguments_are_encrypted",
    ),
    Guard(
        "changed-preview-needs-new-confirmation",
        "A confirmed call whose file or script has changed needs a new confirmation",
        Patch(
            _AUTHORIZE,
            old='if verdict.decision == "confirm" and (reason := _why_outdated(confirmation)):',
            new='if (reason := "x") == "":',
        ),
        failing_test=f"{_PREVIEWS}::test_a_changed_preview_needs_a_new_confirmation[replace]",
    ),
    Guard(
        "unreadable-basis-needs-new-confirmation",
        "A confirmed call whose stored basis cannot be read needs a new confirmation",
        Patch(
            "runs/queries/call_context.py",
            old="    except (CannotBeShown, Refused, ToolFailed):\n        return UNREADABLE",
            new="    except (CannotBeShown, Refused, ToolFailed):\n        return None",
        ),
        failing_test=f"{_PREVIEWS}::test_a_confirmed_call_whose_basis_cannot_be_read_needs_a_new_confirmation[replace]",
    ),
    Guard(
        "changed-preview-is-not-confirmed",
        "A call whose file or script has changed cannot be confirmed on its page",
        Patch(
            "decisions/authorization/decision_pages.py",
            old="if change := change_since_request(decision, context.basis):",
            new='if change := "":',
        ),
        failing_test=f"{_PREVIEWS}::test_a_change_before_the_decision_is_shown_and_cannot_be_confirmed[replace]",
    ),
    Guard(
        "outdated-decision-is-not-confirmed",
        "An answer confirms no call whose file has changed after its page was shown",
        Patch(
            _CONFIRMATIONS,
            old="if change := change_since_request(decision, current_basis(decision)):",
            new='if change := "":',
        ),
        failing_test=f"{_OUTDATED}::"
        "test_a_changed_file_is_named_and_its_write_is_refused_but_not_confirmed[link]",
    ),
    Guard(
        "confirmable-decision-is-not-renewed",
        "A decision that can be confirmed is not withdrawn to be requested anew",
        Patch(_CONFIRMATIONS, old="if _is_confirmable(decision):", new="if False:"),
        failing_test=f"{_OUTDATED}::test_a_decision_that_nothing_has_outdated_is_not_requested_anew",
    ),
    Guard(
        "superseded-confirmation-is-withdrawn",
        "A confirmation that a newer one replaces does not wait any longer",
        Patch(_CONFIRMATIONS, old='_withdraw(found, by=by, how="superseded")', new="pass"),
        failing_test=f"{_OUTDATED}::"
        "test_a_repeated_call_withdraws_the_confirmation_that_it_replaces",
    ),
    Guard(
        "confirmed-call-compares-its-basis",
        "A confirmed call does nothing if its file or script changed after it started",
        Patch(
            "runners/workspace/call_context.py",
            old="if expected is not None and expected != current:",
            new="if False:",
        ),
        failing_test=f"{_PREVIEWS}::test_a_change_after_the_call_started_is_found_by_the_tool[replace]",
    ),
    Guard(
        "snapshot-approval-binds-content",
        "An approved snapshot is not returned if its path or content has changed",
        Patch(
            "runs/queries/call_context.py", old='    "restore_snapshot": _snapshot_basis,\n', new=""
        ),
        failing_test=f"{_PREVIEWS}::test_an_approved_snapshot_that_was_altered_is_not_returned",
    ),
    Guard(
        "upload-is-shown-to-who-decides",
        "Who decides on the completion of an upload sees its name, size, digest and owner",
        Patch(
            "runs/queries/request_previews.py",
            old='    "complete_artifact_upload": _complete,\n',
            new="",
        ),
        failing_test="tests/artifacts/api/test_uploads.py::"
        "test_who_decides_on_a_completion_sees_the_upload",
    ),
    Guard(
        "inbox-permission",
        "An operator without the permission decides nothing in the inbox",
        Patch(
            "decisions/admin/decisions.py",
            old="if not self.has_decide_permission(request):",
            new="if False:",
        ),
        failing_test=f"{_PAGES}::test_a_user_with_view_permission_cannot_decide",
    ),
    Guard(
        "inbox-post",
        "A GET decides nothing in the inbox",
        Patch("decisions/admin/decisions.py", old='if request.method != "POST":', new="if False:"),
        failing_test=f"{_PAGES}::test_a_get_of_an_inbox_action_does_nothing",
    ),
    Guard(
        "inbox-audit",
        "A person's decision is audited",
        Patch(
            _CONFIRMATIONS,
            old='    _record(confirmation, f"confirmation.{status}", by, how=how, hasMac=True)\n',
            new="",
        ),
        failing_test=f"{_PAGES}::test_a_run_resumes_when_a_person_confirms_it_in_the_inbox",
    ),
)

_AUDIT = "tests/decisions/audit/test_append_only_rows.py"
_SEALING = "tests/decisions/audit/test_sealer.py"
_CHECK = "tests/decisions/audit/test_tamper_detection.py"
_ATTACKS = "tests/decisions/audit/test_attack_table.py::test_an_attack_is_answered"
_FORGED = f"{_CHECK}::test_a_row_with_a_wrong_mac_is_never_sealed"


def _append_only(table: str, prefix: str, function: str, event: str) -> Sql:
    """Return the removal of a table's protection from one kind of change.

    On PostgreSQL one trigger protects from both kinds; it is created again for the other one.
    """
    other = "DELETE" if event == "update" else "UPDATE"
    drop = f"DROP TRIGGER {prefix}_no_change ON decisions_{table}"
    create = (
        f"CREATE TRIGGER {prefix}_no_change BEFORE {other} ON decisions_{table}"
        f" FOR EACH ROW EXECUTE FUNCTION {function}()"
    )
    return Sql(f"{drop}; {create}", sqlite=f"DROP TRIGGER {prefix}_no_{event}")


_AUDIT_LOG = (
    Guard(
        "audit-no-update",
        "The database refuses to change an audit row",
        _append_only("auditentry", "audit", "audit_append_only", "update"),
        failing_test=f"{_AUDIT}::test_the_database_rejects_an_update",
    ),
    Guard(
        "audit-no-delete",
        "The database refuses to delete an audit row",
        _append_only("auditentry", "audit", "audit_append_only", "delete"),
        failing_test=f"{_AUDIT}::test_the_database_rejects_a_delete",
    ),
    Guard(
        "audit-no-truncate",
        "The database refuses to truncate the audit log",
        Sql("DROP TRIGGER audit_no_truncate ON decisions_auditentry"),
        failing_test=f"{_AUDIT}::test_the_database_rejects_a_truncate",
    ),
    Guard(
        "audit-no-replace",
        "SQLite refuses to replace an audit row",
        Sql(sqlite="DROP TRIGGER audit_no_replace"),
        failing_test=f"{_AUDIT}::test_the_database_rejects_a_second_row_with_the_same_id",
    ),
    Guard(
        "seals-no-update",
        "The database refuses to change a seal",
        _append_only("auditseal", "seals", "audit_seals_append_only", "update"),
        failing_test="tests/decisions/audit/test_sealer.py::test_the_database_refuses_to_change_a_seal"
        "[UPDATE decisions_auditseal SET hash = 'x']",
    ),
    Guard(
        "seals-no-delete",
        "The database refuses to delete a seal",
        _append_only("auditseal", "seals", "audit_seals_append_only", "delete"),
        failing_test="tests/decisions/audit/test_sealer.py::test_the_database_refuses_to_change_a_seal"
        "[DELETE FROM decisions_auditseal]",
    ),
    Guard(
        "seals-no-truncate",
        "The database refuses to truncate the seals",
        Sql("DROP TRIGGER seals_no_truncate ON decisions_auditseal"),
        failing_test=f"{_SEALING}::test_the_database_refuses_to_truncate_the_seals",
    ),
    Guard(
        "seals-no-replace",
        "SQLite refuses to replace a seal",
        Sql(sqlite="DROP TRIGGER seals_no_replace"),
        failing_test=f"{_SEALING}::test_the_database_refuses_to_replace_a_seal",
    ),
    Guard(
        "audit-edited-row",
        "verify_audit finds a sealed row that was edited",
        Patch(_VERIFY, old="elif fault := fault_of(row):", new="elif fault := None:"),
        failing_test=f"{_CHECK}::test_an_edited_row_is_found[actor = 'x']",
    ),
    Guard(
        "audit-time-is-in-the-mac",
        "The MAC of an audit row covers its time",
        Patch(
            _RECORD,
            old="[*columns, _as_stored(metadata), created_at]",
            new='[*columns, _as_stored(metadata), created_at and ""]',
        ),
        failing_test=f"{_CHECK}::test_an_edited_row_is_found[created_at = '2020-01-01 00:00:00+00:00']",
    ),
    Guard(
        "audit-replaced-row",
        "verify_audit finds a genuine row in the place of another",
        Patch(_VERIFY, old="elif row.mac != link.mac:", new="elif False:"),
        failing_test=f"{_CHECK}::test_a_row_edited_by_a_writer_with_the_key_is_found",
    ),
    Guard(
        "audit-removed-row",
        "verify_audit finds that a sealed row was removed",
        Patch(
            _VERIFY,
            old='report.add(f"{_where(link)}: the row was removed")',
            new="pass",
        ),
        failing_test=f"{_CHECK}::test_a_removed_row_is_found",
    ),
    Guard(
        "audit-unreadable-time",
        "A row with a time that is none hides no other row from readers",
        Patch(
            "decisions/models/audit.py",
            old="is_time = f\"{sql} >= '0001-01-02+00' AND {sql} < '9999-12-31+00'\"",
            new='is_time = "true"',
        ),
        failing_test="tests/decisions/admin/test_audit_log.py"
        "::test_a_row_that_cannot_be_read_is_shown_as_unreadable[created_at = '-infinity']",
    ),
    Guard(
        "audit-gap-of-row",
        "A gap is accepted only if the seal after it follows the one before it",
        Patch(
            "decisions/audit/incidents.py", old="        and after.prev == before.hash\n", new=""
        ),
        failing_test="tests/decisions/audit/test_attack_table.py"
        "::test_accepting_incidents_accepts_no_gap_of_a_removed_row[gap2]",
    ),
    Guard(
        "audit-gap-of-lost-head",
        "A gap with a head that a checkpoint had is not accepted, also after the loss of the head was",
        Patch(
            "decisions/audit/incidents.py",
            old='sealed.update(details.get("lostHeads", ()))',
            new="pass",
        ),
        failing_test="tests/decisions/audit/test_attack_table.py"
        "::test_a_genuine_seal_that_was_overwritten_and_removed_is_not_accepted",
    ),
    Guard(
        "audit-archived-head",
        "A checkpoint whose head was archived is not reported as lost",
        Patch(
            _CHECKPOINTS,
            old="if head == GENESIS or (cut is not None and head == cut.head):",
            new="if head == GENESIS:",
        ),
        failing_test="tests/decisions/audit/test_archive.py"
        "::test_the_archived_head_of_a_checkpoint_is_not_lost",
    ),
    Guard(
        "audit-acceptance-first",
        "An acceptance is recorded before checkpoints are moved",
        Patch(
            "decisions/audit/incidents.py",
            old='    record(AuditEvent(ACCEPTED, actor, "audit", "log", "", "", details))\n',
            new='    start_anew()\n    record(AuditEvent(ACCEPTED, actor, "audit", "log", "", "", details))\n',
        ),
        failing_test="tests/decisions/audit/test_attack_table.py"
        "::test_no_checkpoint_moves_before_the_acceptance_is_recorded",
    ),
    Guard(
        "audit-visible-faults",
        "verify_audit prints no control character of a forged row",
        Patch(_VERIFY, old="visible(fault, MESSAGE_LENGTH)", new="fault"),
        failing_test="tests/decisions/audit/test_attack_table.py"
        "::test_a_forged_text_is_printed_in_visible_characters[of a row]",
    ),
    Guard(
        "audit-triggers",
        "verify_audit compares the triggers of the audit tables with Continuity's",
        Patch(_VERIFY, old="in changed_triggers():", new="in ():"),
        failing_test="tests/decisions/audit/test_triggers.py"
        "::test_a_change_of_the_triggers_is_found[change 0]",
    ),
    Guard(
        "audit-triggers-health",
        "/readyz and doctor compare them too",
        Patch(
            "runs/installation/health/status.py",
            old="if changes := changed_triggers():",
            new="if changes := ():",
        ),
        failing_test="tests/decisions/audit/test_triggers.py"
        "::test_the_health_checks_report_a_changed_trigger",
    ),
    Guard(
        "audit-forged-row",
        "verify_audit finds a row that was inserted without the key",
        Patch(
            _VERIFY,
            old="        if fault := fault_of(row):\n",
            new="        if fault := None:\n",
        ),
        failing_test=_FORGED,
    ),
    Guard(
        "audit-copied-row",
        "verify_audit finds a copy of a row that is not sealed",
        Patch(_VERIFY, old="elif has_twin or row.mac in seen:", new="elif False:"),
        failing_test=f"{_CHECK}::test_a_copy_of_a_genuine_row_is_found_and_never_sealed",
    ),
    Guard(
        "audit-sealed-copy",
        "verify_audit finds a copy of a row that was sealed",
        Patch(
            _VERIFY,
            old="for _, first, second in fetch_stored(_TWICE, []):",
            new="for _, first, second in ():",
        ),
        failing_test=f"{_CHECK}::test_a_copy_of_a_row_with_a_genuine_seal_is_found",
    ),
    Guard(
        "seal-mac",
        "verify_audit finds a seal that was edited",
        Patch(
            _VERIFY,
            old="    if not is_our_link(*link):\n        return",
            new="    if False:\n        return",
        ),
        failing_test=f"{_CHECK}::test_an_edited_seal_is_found[hash]",
    ),
    Guard(
        "seal-chain",
        "verify_audit finds a genuine seal that does not follow the one before",
        Patch(
            _VERIFY,
            old="if before and link.prev not in before:",
            new="if False:",
        ),
        failing_test=f"{_CHECK}::test_seals_of_two_genuine_chains_are_found",
    ),
    Guard(
        "seal-gap",
        "verify_audit finds that a seal was removed",
        Patch(_VERIFY, old="if link.position != position + 1 and not", new="if False and not"),
        failing_test=f"{_CHECK}::test_a_row_removed_with_its_seal_is_found",
    ),
    Guard(
        "seal-outside",
        "verify_audit finds a seal before the first position",
        Patch(
            _VERIFY,
            old="for link, _ in sealed_rows(LOWEST_ID, 0):",
            new="for link, _ in ():",
        ),
        failing_test=f"{_CHECK}::test_a_seal_before_the_first_position_is_found",
    ),
    Guard(
        "checkpoint-differs",
        "verify_audit finds that the chain differs from a checkpoint",
        Patch(
            _VERIFY,
            old="if link.position in checkpoints and checkpoints[link.position] != {link.hash}:",
            new="if False:",
        ),
        failing_test=f"{_CHECK}::test_a_truncated_end_stays_found_when_the_sealer_continues",
    ),
    Guard(
        "checkpoint-beyond-the-chain",
        "verify_audit finds by a checkpoint that the end of the chain was removed",
        Patch(
            _VERIFY,
            old="for lost in sorted({head.position for head in saved.heads if head.position > last}):",
            new="for lost in ():",
        ),
        failing_test=f"{_CHECK}::test_a_removed_log_is_found",
    ),
    Guard(
        "checkpoint-is-kept",
        "A checkpoint that the chain lost is kept when sealing continues",
        Patch(_CHECKPOINTS, old="        _append(folder, saved.head, number)\n", new=""),
        failing_test=f"{_CHECK}::test_a_checkpoint_that_the_chain_lost_is_kept_when_sealing_continues",
    ),
    Guard(
        "checkpoint-is-saved",
        "The newest head of the chain is saved outside of the database",
        Patch(_SEALER, old="        self._save_head(head)\n", new=""),
        failing_test=f"{_SEALING}::test_the_newest_head_is_stored_outside_the_database",
    ),
    Guard(
        "sealer-refuses-forged-rows",
        "A row that was written without the key is never sealed",
        Patch(
            _SEALER,
            old="return fault_of(found.row) or",
            new="return",
        ),
        failing_test=_FORGED,
    ),
    Guard(
        "sealer-passes-over-copies",
        "A copy of a sealed row does not stop the sealer",
        Patch(
            _SEALER,
            old="taken = AuditSeal.objects.filter(mac__in=list(wanted)) if wanted else []",
            new="taken = AuditSeal.objects.none()",
        ),
        failing_test=f"{_CHECK}::test_a_copy_of_a_genuine_row_is_found_and_never_sealed",
    ),
    Guard(
        "sealer-waits-for-late-commits",
        "A row that is committed late is sealed too",
        Patch(_SEALER, old="if self._pending.writers & writers:", new="if False:"),
        failing_test=f"{_SEALING}::test_a_row_that_commits_late_is_sealed_late",
    ),
    Guard(
        "sealer-mark",
        "A row that Continuity did not write does not move the sealer's mark",
        Patch(_SEALER, old="id_after(min(settled, self._newest_sealed))", new="id_after(settled)"),
        failing_test=f"{_SEALING}::test_a_forged_row_does_not_move_the_mark",
    ),
    Guard(
        "sealer-ids-moved-back",
        "The sealer begins again if the ids move back",
        Patch(_SEALER, old="or last_id >= self._next_id - 1:", new="or last_id:"),
        failing_test=f"{_SEALING}::test_rows_are_sealed_after_the_sequence_moved_back",
    ),
    Guard(
        "sealer-recent-rows",
        "The sealer finds recent rows whatever their ids",
        Patch(_SEALER, old="return sealed + self._seal_recent()", new="return sealed"),
        failing_test=f"{_SEALING}::test_a_recent_row_with_a_low_id_is_sealed",
    ),
    Guard(
        "sealer-forged-seal",
        "A forged seal does not count as the seal of a row",
        Patch(
            _SEALER,
            old="and is_seal_of(self.seal, self.row)",
            new="",
        ),
        failing_test=f"{_ATTACKS}[forge_a_seal_for_a_future_row]",
    ),
    Guard(
        "audit-duplicate-keys",
        "verify_audit finds metadata in which a key occurs twice",
        Patch(_STORED, old="if len(found) != len(pairs):", new="if False:"),
        failing_test=f"{_ATTACKS}[edit_into_duplicate_keys]",
    ),
    Guard(
        "audit-late-rows",
        "verify_audit fails on rows without a seal that are over a minute old",
        Patch(_VERIFY, old="    if late:\n", new="    if False:\n"),
        failing_test=f"{_ATTACKS}[set_the_clock_back]",
    ),
    Guard(
        "audit-missing-checkpoints",
        "verify_audit fails if the checkpoints were deleted and the sealer made new ones",
        Patch(_SEALER, old="            record_missing_checkpoints(head.position)\n", new=""),
        failing_test=f"{_ATTACKS}[delete_the_checkpoints_and_go_on]",
    ),
    Guard(
        "audit-interrupted-sealing",
        "An interruption of sealing is recorded",
        Patch(
            _SEALER,
            old="            self._record_interruption(begun_at - self._page_at)  # sealed with this page\n",
            new="",
        ),
        failing_test=f"{_SEALING}::"
        "test_a_row_removed_while_the_sealer_was_blocked_leaves_an_incident[1]",
    ),
    Guard(
        "audit-first-checkpoint",
        "A checkpoint exists before the first row is sealed",
        Patch(
            _SEALER,
            old="            save_head(GENESIS, next_id=None)  # so a chain without a checkpoint has lost it\n",
            new="            pass\n",
        ),
        failing_test=f"{_SEALING}::"
        "test_a_sealer_killed_before_its_first_checkpoint_leaves_no_incident",
    ),
    Guard(
        "audit-refusal-is-committed",
        "The sealer records a refusal again if the first record of it was rolled back",
        Patch(
            _SEALER,
            old="            before, head = self._seal(wanted)\n        self._refused.update(recorded)",
            new="            self._refused.update(recorded)\n            before, head = self._seal(wanted)",
        ),
        failing_test=f"{_SEALING}::"
        "test_a_refusal_is_recorded_after_a_page_that_was_rolled_back[seals_after]",
    ),
    Guard(
        "audit-refusals-after-an-acceptance",
        "After an acceptance, each sealer records refusals anew, whichever of them sealed it",
        Patch(_SEALER, old="        self._forget_accepted()\n", new=""),
        failing_test="tests/decisions/audit/test_attack_table.py"
        "::test_a_sealer_records_refusals_anew_after_an_acceptance_that_another_one_sealed",
    ),
    Guard(
        "audit-incident-of-a-reused-id",
        "An incident stays open if another row gets the id of the refused one",
        Patch(
            _VERIFY,
            old="    if rows_without_seal([row_id]):\n",
            new="    if fetch_stored(_EXISTS, [row_id]):\n",
        ),
        failing_test=f"{_ATTACKS}[reuse_the_id_of_a_refused_row]",
    ),
    Guard(
        "archive-cut-before-removal",
        "Archived rows are removed after the cut is recorded",
        Patch(
            "decisions/audit/archive.py",
            old="    _record_cut(archived, path, before=before, actor=actor)\n    try:\n        _prune(last.position)\n",
            new="    try:\n        _prune(last.position)\n        _record_cut(archived, path, before=before, actor=actor)\n",
        ),
        failing_test="tests/decisions/audit/test_archive.py::"
        "test_no_row_is_lost_when_the_process_is_killed[after a batch]",
    ),
    Guard(
        "archive-genuine-cut",
        "A cut of the chain that Continuity did not record does not count",
        Patch(
            "decisions/audit/chain.py",
            old="        if fault_of(row) is None:\n            head",
            new="        if True:\n            head",
        ),
        failing_test="tests/decisions/audit/test_archive.py::test_a_forged_cut_hides_no_removal",
    ),
    Guard(
        "archive-cut-of-this-chain",
        "A cut counts only if its row is sealed after it in this chain",
        Patch(
            "decisions/audit/chain.py",
            old="counts = is_seal_of(seal, row) and head.position < seal.position",
            new="counts = True",
        ),
        failing_test=f"{_ATTACKS}[repeat_a_cut_that_was_not_sealed_yet]",
    ),
    Guard(
        "archive-newer-than-checkpoints",
        "A checkpoint of the archived rows that was saved after the archive is of another chain",
        Patch(
            _CHECKPOINTS,
            old="is_before and checkpoint.at <= cut.made_at.timestamp() + CLOCKS_DIFFER_S",
            new="is_before",
        ),
        failing_test=f"{_ATTACKS}[repeat_a_cut_with_its_seals_and_go_on]",
    ),
    Guard(
        "sealer-refuses-cuts-of-other-chains",
        "The sealer refuses a cut that this chain does not have",
        Patch(_SEALER, old=" or fault_of_cut(found.row)", new=""),
        failing_test=f"{_ATTACKS}[repeat_a_cut_that_a_restore_undid]",
    ),
    Guard(
        "scheduler-broad-except",
        "A job of the scheduler that fails with any error stops no other job",
        Patch(
            "runs/scheduler/jobs.py",
            old="        except Exception:  # a defect",
            new="        except OSError:  # a defect",
        ),
        failing_test="tests/runs/scheduler/test_jobs.py::"
        "test_a_job_that_fails_stops_neither_the_others_nor_the_scheduler[error1]",
    ),
    Guard(
        "sealer-lock",
        "Of several sealers, one works at a time",
        Patch(_SEALER, old="yield bool(cursor.fetchone()[0])", new="yield True"),
        failing_test=f"{_SEALING}::test_concurrent_sealers_create_one_chain",
    ),
    Guard(
        "audit-query-workspace",
        "A credential reads the audit rows of its workspace alone",
        Patch(
            _QUERY,
            old="tenant_id=principal.tenant_id, workspace_id=principal.workspace_id",
            new="tenant_id=principal.tenant_id",
        ),
        failing_test="tests/decisions/audit/test_query.py::test_rows_of_another_workspace_are_not_returned",
    ),
    Guard(
        "audit-query-users",
        "A credential of some users reads no audit rows about others",
        Patch(_QUERY, old="if users is None:", new="if True:"),
        failing_test="tests/decisions/audit/test_query.py::"
        "test_a_token_with_users_reads_the_rows_of_its_users_and_its_own",
    ),
    Guard(
        "evidence-users",
        "A credential of some users gets no decisions and audit rows about others as evidence",
        (
            Patch(
                "runs/queries/evidence.py",
                old="audit_records(limited_to_users(rows, principal))",
                new="audit_records(rows)",
            ),
            Patch(_QUERY, old="    if principal.acts_for is None:", new="    if True:"),
        ),
        failing_test="tests/runs/queries/test_evidence.py::"
        "test_a_token_of_some_users_gets_no_decisions_and_audit_rows_of_others",
    ),
    Guard(
        "audit-query-scope",
        "Reading the audit log needs the scope audit:read (the view and the service both test it)",
        (
            Patch(
                "decisions/views/audit.py",
                old='scopes = {"GET": "audit:read"}',
                new='scopes = {"GET": "runs:read"}',
            ),
            Patch(_QUERY, old='    principal.require("audit:read")\n', new=""),
        ),
        failing_test="tests/decisions/audit/test_query.py::test_a_token_without_the_scope_is_rejected",
    ),
)

_WITH_AUDIT = "tests/decisions/audit/test_audit_with_changes.py::test_nothing_is_changed_without_its_audit_row"
_IN_TRANSACTION, _NOT_IN_TRANSACTION = "with transaction.atomic():\n", "if True:\n"


def _committed_with_its_audit_row(
    name: str, change: str, file: str, first_line: str, *others: Patch, is_lock: bool = False
) -> Guard:
    """Return the guard that a change is rolled back with its audit row.

    The transaction begins with `first_line`. A lock, which needs a transaction, goes with it.
    """
    transaction = Patch(
        file,
        old=_IN_TRANSACTION + first_line,
        new=_NOT_IN_TRANSACTION + ("" if is_lock else first_line),
    )
    return Guard(
        name,
        f"Without its audit row, there is no commit of: {change}",
        (transaction, *others),
        failing_test=f"{_WITH_AUDIT}[{change}]",
    )


_TRANSACTIONS = (
    _committed_with_its_audit_row(
        "transaction-of-a-new-token",
        "create a token",
        _PRINCIPALS,
        "        owner = ensure_workspace(workspace, tenant)",
    ),
    _committed_with_its_audit_row(
        "transaction-of-a-revocation",
        "revoke a token",
        _TOKENS,
        "        fresh = Token",
    ),
    _committed_with_its_audit_row(
        "transaction-of-users-of-a-token",
        "change the users of a token",
        _TOKENS,
        "        locked = Token.objects",
        Patch(_TOKENS, old='Token.objects.select_for_update(of=("self",))', new="Token.objects"),
    ),
    _committed_with_its_audit_row(
        "transaction-of-a-login-link", "create a login link", _LOGIN, "        LoginLink"
    ),
    _committed_with_its_audit_row(
        "transaction-of-a-new-rule",
        "create a rule",
        _RULES,
        "        rule = _write(fields, actor=actor)\n",
    ),
    _committed_with_its_audit_row(
        "transaction-of-a-changed-rule", "change a rule", _RULES, "        old = _retire"
    ),
    _committed_with_its_audit_row(
        "transaction-of-a-retired-rule", "retire a rule", _RULES, "        rule = _retire"
    ),
    _committed_with_its_audit_row(
        "transaction-of-a-confirmation",
        "confirm a decision",
        _CONFIRMATIONS,
        "        if not own and unseen is None and resolve",
    ),
    _committed_with_its_audit_row(
        "transaction-of-an-object",
        "write an object",
        _OBJECTS,
        "            writing.owner.lock()\n",
        is_lock=True,
    ),
    _committed_with_its_audit_row(
        "transaction-of-an-outcome",
        "report an outcome",
        _OUTCOMES,
        "            return _report",
        Patch(_OUTCOMES, old="    owner.lock()\n    outcome = (", new="    outcome = ("),
    ),
    _committed_with_its_audit_row(
        "transaction-of-a-decision",
        "decide on a message",
        _CHAT,
        "        owner.lock()  # one message of a user at a time\n",
        is_lock=True,
    ),
)

_BUNDLES = "tests/decisions/audit/test_bundles.py"
_TAMPERED = f"{_BUNDLES}::test_a_line_that_was_tampered_with_is_named"

_EVIDENCE = (
    Guard(
        "bundle-line-proof",
        "A changed line of a bundle is found",
        Patch(_BUNDLE, old="if not is_intact:", new="if False:"),
        failing_test=f"{_TAMPERED}[<lambda>-3-changed]",
    ),
    Guard(
        "bundle-end",
        "A truncated bundle is found",
        Patch(_BUNDLE, old="if not ended:", new="if False:"),
        failing_test=f"{_TAMPERED}[<lambda>-None-the end is missing]",
    ),
    Guard(
        "bundle-audit-row",
        "A bundle shows that an audit row was edited before the export",
        Patch(
            _VERIFY_BUNDLE,
            old='if not is_mac_of(written, str(record["mac"])):',
            new="if False:",
        ),
        failing_test=f"{_BUNDLES}::test_evidence_shows_an_audit_row_that_was_edited",
    ),
    Guard(
        "bundle-seal",
        "A bundle shows that a seal was edited before the export",
        Patch(
            _VERIFY_BUNDLE,
            old='if not is_our_link(link.position, record["id"], record["mac"], seal["prev"],'
            " link.hash):",
            new="if False:",
        ),
        failing_test=f"{_BUNDLES}::test_evidence_shows_a_seal_that_was_edited",
    ),
    Guard(
        "bundle-chain",
        "A bundle shows that two seals are of different chains",
        Patch(
            _VERIFY_BUNDLE,
            old="if link.position == last.position + 1:",
            new="if False:",
        ),
        failing_test=f"{_BUNDLES}::test_evidence_shows_a_seal_of_another_chain",
    ),
    Guard(
        "bundle-events",
        "A bundle shows that an event was removed before the export",
        Patch(_VERIFY_BUNDLE, old='if record["seq"] != self._seq:', new="if False:"),
        failing_test=f"{_BUNDLES}::test_evidence_shows_a_missing_event",
    ),
    Guard(
        "bundle-artifacts",
        "A bundle shows that the bytes of an artifact were changed",
        Patch(
            _VERIFY_BUNDLE,
            old='if is_complete and self.digest.hexdigest() == self.artifact.get("sha256"):',
            new="if is_complete:",
        ),
        failing_test=f"{_BUNDLES}::test_evidence_shows_changed_bytes_of_an_artifact",
    ),
    Guard(
        "audit-export-is-audited",
        "An export of the audit log is audited",
        Patch(
            _QUERY,
            old='    record(AuditEvent("audit.exported", actor, "audit", "log", *owner, {"filters":'
            " filters}))\n",
            new="",
        ),
        failing_test="tests/decisions/admin/test_audit_log.py::test_the_filtered_rows_are_exported_with_their_chain",
    ),
)

_ACCESS = "tests/decisions/api/test_access.py"
_REFUSALS = "tests/decisions/api/test_audited_refusals.py"
_SECRET_PATH = f"{_REFUSALS}::test_a_path_that_looks_like_a_secret_is_not_stored"
_NUL_PATH = f"{_REFUSALS}::test_a_nul_in_a_path_is_recorded_as_a_replacement_character"

_SECURITY = (
    Guard(
        "log-redaction",
        "The log contains no secret",
        Patch(
            _SETTINGS,
            old='            "filters": ["refusals", "redact"],\n',
            new='            "filters": ["refusals"],\n',
        ),
        failing_test="tests/decisions/security/test_logs.py::test_the_log_of_the_settings_redacts_secrets",
    ),
    Guard(
        "audit-redacts-paths",
        "The audit row about an unknown token contains no secret from the path",
        Patch(_DRF, old="redact(request.path[:128])", new="request.path[:128]"),
        failing_test=_SECRET_PATH,
    ),
    Guard(
        "audit-redacts-names",
        "The audit row about a refused call contains no secret from the path",
        Patch(_DRF, old="redact(str(path[part])[:64])", new="str(path[part])[:64]"),
        failing_test=_SECRET_PATH,
    ),
    Guard(
        "audit-storable-paths",
        "A path with a NUL can be audited",
        Patch(
            _DRF,
            old="storable_text(redact(request.path[:128]))",
            new="redact(request.path[:128])",
        ),
        failing_test=_NUL_PATH,
    ),
    Guard(
        "audit-storable-names",
        "A name with a NUL can be audited",
        Patch(
            _DRF,
            old="storable_text(redact(str(path[part])[:64]))",
            new="redact(str(path[part])[:64])",
        ),
        failing_test=_NUL_PATH,
    ),
    Guard(
        "chat-redacts-messages",
        "A secret in a chat message is not stored",
        Patch(_CONVERSATION, old='redact(call["message"])', new='call["message"]'),
        failing_test="tests/decisions/chat/test_chat.py::test_no_row_contains_a_secret_or_the_token",
    ),
    Guard(
        "chat-judges-messages-as-sent",
        "Chat decides on a message as it was sent, not on its masked form",
        Patch(
            _CONVERSATION,
            old="return RequestTexts(message, (), texts), RequestTexts(hidden, (), given)",
            new="return RequestTexts(hidden, (), texts), RequestTexts(hidden, (), given)",
        ),
        failing_test="tests/decisions/chat/test_masked_texts.py::"
        "test_a_pending_request_is_judged_by_its_masked_words_too",
    ),
    Guard(
        "chat-redacts-slots",
        "A secret in a slot of a chat message is not stored",
        Patch(_CONVERSATION, old="given = redact_value(texts)", new="given = texts"),
        failing_test="tests/decisions/chat/test_chat.py::test_a_secret_in_a_slot_is_not_stored",
    ),
    Guard(
        "chat-stores-no-confirm-token",
        "A repeated chat call does not get the confirm token",
        Patch(_CHAT, old="reply.without_token(),", new="reply.as_dict(),"),
        failing_test="tests/decisions/chat/test_answers.py::"
        "test_a_repeated_key_and_body_returns_the_same_answer_without_the_token",
    ),
    Guard(
        "encrypted-values-are-bound",
        "An encrypted value that was copied to another row is not read there",
        Patch(
            "decisions/security/sealed_columns.py",
            old='return str(getattr(row, "sealed_identity", None) or row.pk)',
            new='return "row"',
        ),
        failing_test="tests/runs/installation/test_encrypted_columns.py::"
        "test_a_value_copied_to_another_column_or_row_is_not_read_there",
    ),
    Guard(
        "encrypted-values-have-a-purpose",
        "An encrypted value that was copied to another column is not read there",
        Patch(
            "decisions/security/sealed_columns.py",
            old='return f"{row._meta.db_table}.{column}"',
            new='return "column"',
        ),
        failing_test="tests/runs/installation/test_encrypted_columns.py::"
        "test_a_value_copied_to_another_column_or_row_is_not_read_there",
    ),
    Guard(
        "upgrade-encrypts-for-both",
        "During a rolling upgrade, the previous version reads what the present one encrypts",
        Patch(
            "decisions/security/sealed_columns.py",
            old="return settings.ROLLING_UPGRADE and _purpose(row, column) in _OF_PREVIOUS_VERSION",
            new="return False",
        ),
        failing_test="tests/runs/installation/test_encrypted_columns.py::"
        "test_the_previous_version_reads_what_is_written_during_a_rolling_upgrade",
    ),
    Guard(
        "answers-without-mac-are-audited",
        "During a rolling upgrade, an answer without MAC counts only for the call that was audited",
        Patch(
            "decisions/authorization/genuine_answers.py",
            old="is_genuine(row) and _is_about(row.metadata, confirmation)",
            new="is_genuine(row)",
        ),
        failing_test="tests/decisions/authorization/test_forged_answers.py"
        "::test_an_audited_answer_does_not_count_for_another_call_during_a_rolling_upgrade",
    ),
    Guard(
        "answers-that-lost-their-mac",
        "During a rolling upgrade, an answer that had a MAC does not count without it",
        Patch(
            "decisions/authorization/genuine_answers.py",
            old='        and not row.metadata.get("hasMac")\n',
            new="",
        ),
        failing_test="tests/decisions/authorization/test_forged_answers.py::"
        "test_an_answer_of_this_version_does_not_count_without_its_mac_during_a_rolling_upgrade",
    ),
    Guard(
        "answers-without-mac-of-their-step",
        "During a rolling upgrade, an answer without MAC does not count for another step",
        Patch(
            "decisions/authorization/genuine_answers.py",
            old="recorded is None or recorded == _step_key(decision)",
            new="True",
        ),
        failing_test="tests/decisions/authorization/test_forged_answers.py"
        "::test_an_answer_does_not_count_for_another_step_with_the_same_call_during_a_rolling_upgrade"
        "[answer_in_older_version]",
    ),
    Guard(
        "forged-answers-while-upgrading",
        "During a rolling upgrade, an answer without MAC and without genuine audit rows permits nothing",
        Patch(
            "decisions/authorization/genuine_answers.py",
            old="        return _is_audited(confirmation)\n",
            new="        return True\n",
        ),
        failing_test="tests/decisions/authorization/test_forged_answers.py"
        "::test_an_answer_without_audit_row_does_not_count_during_a_rolling_upgrade",
    ),
    Guard(
        "unsigned-checkpoints",
        "Without a rolling upgrade, a checkpoint without a signature does not count",
        Patch(
            _CHECKPOINTS,
            old="if proof is None and not settings.ROLLING_UPGRADE:",
            new="if False:",
        ),
        failing_test="tests/decisions/audit/test_previous_checkpoints.py"
        "::test_they_count_for_nothing_otherwise",
    ),
    Guard(
        "encryption-at-rest",
        "Secret inputs are stored encrypted",
        (
            Patch(_KEYS, old="return _VERSION + nonce + encrypted", new="return plain"),
            Patch(
                _KEYS,
                old="return MultiFernet(_unbound_keys()).decrypt(sealed)",
                new="return bytes(sealed)",
            ),
        ),
        failing_test="tests/runs/submission/test_secret_inputs.py::"
        "test_secrets_are_removed_from_the_inputs_and_encrypted",
    ),
    Guard(
        "url-credentials",
        "A credential in the query of a run's URL is masked in what callers read",
        Patch(
            "runs/execution/resources.py",
            old="self.secrets.masker(*keys, url_credentials=in_urls)",
            new="self.secret_masker",
        ),
        failing_test="tests/runs/task_templates/test_url_credentials_stored_nowhere.py::"
        "test_a_credential_in_a_url_is_in_no_event_step_result_artifact_or_page",
    ),
    Guard(
        "chat-secret-slots",
        "The value of a chat slot that is named as a secret is not stored",
        Patch(
            "decisions/chat/conversation.py",
            old="    given = redact_value(texts)\n",
            new="    given = {slot: redact(text) for slot, text in texts.items()}\n",
        ),
        failing_test="tests/decisions/chat/test_chat.py::"
        "test_the_value_of_a_slot_that_is_named_as_a_secret_is_not_stored[password]",
    ),
    Guard(
        "token-digest",
        "A bearer token is stored as a keyed digest only",
        (
            Patch(_PRINCIPALS, old="digest=mac(_PURPOSE, secret.encode()),", new="digest=secret,"),
            Patch(
                _PRINCIPALS,
                old="digests = macs(_PURPOSE, secret.encode())",
                new="digests = (secret,)",
            ),
        ),
        failing_test="tests/decisions/identity/test_principals.py::test_only_a_keyed_digest_of_a_token_is_stored",
    ),
    Guard(
        "login-link-digest",
        "A one-time login link is stored as a keyed digest only",
        (
            Patch(_LOGIN, old="digest=mac(_PURPOSE, token.encode()),", new="digest=token,"),
            Patch(_LOGIN, old="digest__in=macs(_PURPOSE, token.encode())", new="digest=token"),
        ),
        failing_test="tests/decisions/identity/test_one_time_login.py::test_the_token_is_not_stored_in_the_database",
    ),
    Guard(
        "confirm-token-digest",
        "A confirm token is stored as a keyed digest only",
        (
            Patch(
                _CONFIRMATIONS,
                old="token_digest=None if token is None else mac(DIGEST_PURPOSE,"
                " token_message(decision, token)),",
                new="token_digest=token,",
            ),
            Patch(_BY_TOKEN, old=_WRONG_TOKEN, new="    if token != confirmation.token_digest:"),
        ),
        failing_test=f"{_CONFIRMS}::test_the_token_itself_is_not_stored",
    ),
    Guard(
        "key-rotation-tokens",
        "A token stays valid when a newer key is configured",
        Patch(
            _PRINCIPALS,
            old="digests = macs(_PURPOSE, secret.encode())",
            new="digests = macs(_PURPOSE, secret.encode())[:1]",
        ),
        failing_test="tests/decisions/security/test_key_rotation.py::test_a_token_is_valid_until_its_key_is_removed",
    ),
    Guard(
        "key-rotation-approvals",
        "An approval is found when a newer key is configured, and is used once",
        Patch(
            _AUTHORIZE,
            old="decision__deed_key__in=call.call_keys",
            new="decision__deed_key=call.call_keys[0]",
        ),
        failing_test="tests/decisions/security/test_key_rotation.py::test_an_approval_under_the_old_key_is_used_once",
    ),
    Guard(
        "local-trust",
        "A token's trust level local does not count for a call that is not local",
        Patch(
            _DRF,
            old='return principal if is_local_call(request) else principal.with_trust("remote")',
            new="return principal",
        ),
        failing_test=f"{_ACCESS}::test_a_local_token_behind_a_proxy_is_treated_as_remote[headers0]",
    ),
)

_PRINCIPAL_TESTS = "tests/decisions/identity/test_principals.py"
_ONCE = "tests/decisions/identity/test_one_time_login.py"
_LOGIN_AUDIT = f"{_ONCE}::test_creation_use_and_refusal_of_a_link_are_audited"

_IDENTITY = (
    Guard(
        "token-revoked-on-long-connections",
        "A ticket of a revoked token is refused",
        Patch(
            _PRINCIPALS,
            old="filter(valid_token(), id=name).exists()",
            new="filter(id=name).exists()",
        ),
        failing_test=f"{_CONTRACT}/test_task_event_readers.py::test_a_ticket_is_invalid_once_its_token_is_revoked",
    ),
    Guard(
        "token-expiry",
        "An expired token is refused",
        Patch(_PRINCIPALS, old="    if has_expired:\n", new="    if False:\n"),
        failing_test=f"{_ENDED_TOKENS}::test_a_token_works_until_it_expires_and_then_says_so",
    ),
    Guard(
        "token-expiry-on-long-connections",
        "An open connection ends when its token expires",
        Patch(
            _PRINCIPALS,
            old="return Q(revoked_at__isnull=True) & ~expired",
            new="return Q(revoked_at__isnull=True)",
        ),
        failing_test=f"{_ENDED_TOKENS}::test_an_open_mcp_stream_ends[expire]",
    ),
    Guard(
        "login-deactivated-on-long-connections",
        "A ticket of a deactivated operator is refused",
        Patch(
            _PRINCIPALS,
            old="filter(username=name, is_active=True, is_staff=True)",
            new="filter(username=name)",
        ),
        failing_test=f"{_CONTRACT}/test_task_event_readers.py::"
        "test_an_admin_ticket_is_invalid_once_the_user_is_deactivated",
    ),
    Guard(
        "permission-on-long-connections",
        "An admin user who lost the permission cannot act over a connection that is open",
        Patch(
            _PRINCIPALS,
            old="not principal.permission or staff.has_perm(principal.permission)",
            new="True",
        ),
        failing_test=f"{_CONTRACT}/test_live_socket.py::"
        "test_a_user_who_lost_the_rights_meanwhile_cannot_act[_forbid_to_operate]",
    ),
    Guard(
        "token-trust",
        "A token without the trust level local is remote, also on this machine",
        Patch(
            _PRINCIPALS,
            old='return "local" if text == "local" else "remote"',
            new='return "local"',
        ),
        failing_test=f"{_ACCESS}::test_a_remote_token_stays_remote_on_this_machine",
    ),
    Guard(
        "token-default-scopes",
        "A new token cannot confirm unless it is given the scope",
        Patch(
            _PRINCIPALS,
            old='DEFAULT_SCOPES = SCOPES - {"targets:admin", "confirm", "metrics:read"}',
            new="DEFAULT_SCOPES = SCOPES",
        ),
        failing_test=f"{_REST_CONFIRM}::test_an_agent_cannot_confirm_a_tool_call",
    ),
    Guard(
        "token-of-users-reads-no-audit-log",
        "A new token of some users cannot read the audit log unless it is given the scope",
        Patch(
            _PRINCIPALS,
            old="return DEFAULT_SCOPES - _AUDIT_SCOPES if acts_for else DEFAULT_SCOPES",
            new="return DEFAULT_SCOPES",
        ),
        failing_test=f"{_PRINCIPAL_TESTS}::test_a_token_that_names_users_needs_an_explicit_audit_scope",
    ),
    Guard(
        "token-unknown-scopes",
        "A token with an unknown scope is not created",
        Patch(_PRINCIPALS, old="    if unknown:\n", new="    if False:\n"),
        failing_test=f"{_PRINCIPAL_TESTS}::test_unknown_scopes_are_refused_by_name",
    ),
    Guard(
        "user-id-characters",
        "A user id has no character that separates the parts of a path",
        Patch(
            _PRINCIPALS,
            old="if not fits or not user_id.isprintable():",
            new="if not user_id.isprintable():",
        ),
        failing_test=f"{_PRINCIPAL_TESTS}::test_an_invalid_user_id_creates_no_token[a/b]",
    ),
    Guard(
        "user-id-is-visible",
        "A user id has no invisible character",
        Patch(
            _PRINCIPALS,
            old="if not fits or not user_id.isprintable():",
            new="if not fits:",
        ),
        failing_test=f"{_PRINCIPAL_TESTS}::test_an_invalid_user_id_creates_no_token[\\u202ea]",
    ),
    Guard(
        "token-creation-is-audited",
        "The creation of a token is audited",
        Patch(
            _PRINCIPALS,
            old='        record(AuditEvent("token.created", actor, "token", token.id, *owner_ids,'
            " details))\n",
            new="",
        ),
        failing_test="tests/decisions/admin/test_tokens.py::test_a_token_is_displayed_once_and_works",
    ),
    Guard(
        "token-revocation-is-audited",
        "The revocation of a token is audited",
        Patch(
            _TOKENS,
            old='        record(AuditEvent("token.revoked", actor, "token", token.id, *owner,'
            ' {"name": token.name}))\n',
            new="",
        ),
        failing_test="tests/decisions/admin/test_tokens.py::test_revoking_twice_is_one_audit_event",
    ),
    Guard(
        "token-is-revoked-once",
        "A second revocation changes nothing",
        Patch(
            _TOKENS,
            old="fresh = Token.objects.filter(id=token_id, revoked_at__isnull=True)",
            new="fresh = Token.objects.filter(id=token_id)",
        ),
        failing_test="tests/decisions/admin/test_tokens.py::test_revoking_twice_is_one_audit_event",
    ),
    Guard(
        "revoked-token-gets-no-users",
        "The users of a revoked token cannot be changed",
        Patch(
            _TOKENS,
            old="locked.filter(id=token_id, revoked_at__isnull=True).first()",
            new="locked.filter(id=token_id).first()",
        ),
        failing_test="tests/decisions/admin/test_tokens.py::test_a_revoked_token_accepts_no_users",
    ),
    Guard(
        "scope-is-required",
        "A service refuses a credential that lacks the scope",
        Patch(_PRINCIPALS, old="if scope not in self.scopes:", new="if False:"),
        failing_test="tests/decisions/continuity/test_user_objects.py::test_a_reader_cannot_write",
    ),
    Guard(
        "view-without-scopes",
        "A view without scopes refuses every caller",
        Patch(
            _DRF,
            old='scopes.get(method, "none that exists")',
            new='scopes.get(method, "runs:read")',
        ),
        failing_test="tests/decisions/api/test_view_without_scopes.py::test_a_view_without_scopes_refuses_every_token",
    ),
    Guard(
        "anonymous-events-write-few-rows",
        "Calls with unknown tokens, failed sign-ins and invalid links write a limited number of audit rows",
        Patch(
            "decisions/audit/anonymous_events.py",
            old="if network not in written and len(written) < PEERS_PER_MINUTE:",
            new="if True:",
        ),
        failing_test="tests/decisions/audit/test_anonymous_events.py"
        "::test_a_flood_from_one_peer_is_two_rows_a_minute",
    ),
    Guard(
        "refusals-are-not-logged",
        "A request that is refused writes no log line",
        Patch(
            "config/settings.py",
            old='"filters": ["refusals", "redact"]',
            new='"filters": ["redact"]',
        ),
        failing_test="tests/config/test_log_of_refused_requests.py"
        "::test_a_refused_request_writes_no_log_line[GET-/nowhere-404]",
    ),
    Guard(
        "anonymous-events-of-a-flood",
        "Counted anonymous events are written every minute while a flood lasts",
        Patch(
            "decisions/audit/anonymous_events.py",
            old="self._counted_since == _minute() and",
            new="self._minute == _minute() and",
        ),
        failing_test="tests/decisions/audit/test_anonymous_events.py"
        "::test_a_flood_that_does_not_end_is_written_every_minute",
    ),
    Guard(
        "anonymous-events-are-counted",
        "Anonymous events without a row of their own are counted in a later row",
        Patch(
            "decisions/audit/anonymous_events.py",
            old="    record_all(rows)\n",
            new="",
        ),
        failing_test="tests/decisions/audit/test_anonymous_events.py"
        "::test_a_flood_from_one_peer_is_two_rows_a_minute",
    ),
    Guard(
        "sign-in-tries-are-limited",
        "After too many tries a password is not checked",
        Patch(
            "decisions/admin/sign_in.py", old="        if self.wait_s:\n", new="        if False:\n"
        ),
        failing_test="tests/decisions/identity/test_sign_in_limits.py"
        "::test_one_address_has_to_wait_after_many_tries",
    ),
    Guard(
        "sign-in-tries-are-concurrent",
        "Of concurrent tries of a password after the free ones, one is checked",
        Patch("decisions/identity/sign_in_limits.py", old=", nx=True):", new="):"),
        failing_test="tests/decisions/identity/test_sign_in_limits.py"
        "::test_of_concurrent_tries_only_the_free_ones_and_one_more_are_checked",
    ),
    Guard(
        "refusals-are-audited",
        "A right that only the service tests is audited too when it is missing",
        Patch(
            _VIEW,
            old="return is_access_refusal(refusal, reads=reads) and isinstance(self.request.auth,"
            " Principal)",
            new="return False",
        ),
        failing_test=f"{_REFUSALS}::test_a_missing_scope_that_only_the_service_checks_is_audited",
    ),
    Guard(
        "login-link-works-once",
        "A one-time login link works once (the test before and the update both require it)",
        (
            Patch(
                _LOGIN,
                old="return link.used_at is not None or link.expires_at <= datetime.now(UTC)",
                new="return link.expires_at <= datetime.now(UTC)",
            ),
            Patch(_LOGIN, old="used_at__isnull=True, expires_at__gt=now", new="expires_at__gt=now"),
        ),
        failing_test=f"{_ONCE}::test_a_link_works_once",
    ),
    Guard(
        "login-link-signs-one-in",
        "Of several concurrent visitors of a one-time login link, one is signed in",
        Patch(_LOGIN, old="used_at__isnull=True, expires_at__gt=now", new="expires_at__gt=now"),
        failing_test=f"{_ONCE}::test_of_several_concurrent_posts_one_is_signed_in",
    ),
    Guard(
        "login-link-expires",
        "A one-time login link expires (the test before and the update both require it)",
        (
            Patch(
                _LOGIN,
                old="return link.used_at is not None or link.expires_at <= datetime.now(UTC)",
                new="return link.used_at is not None",
            ),
            Patch(
                _LOGIN,
                old="used_at__isnull=True, expires_at__gt=now",
                new="used_at__isnull=True",
            ),
        ),
        failing_test=f"{_ONCE}::test_a_link_expires_after_a_quarter_of_an_hour",
    ),
    Guard(
        "login-link-is-used-by-post",
        "A GET does not use up a one-time login link",
        Patch(_LOGIN, old='if request.method == "GET":', new="if False:"),
        failing_test=f"{_ONCE}::test_a_get_does_not_use_up_a_link",
    ),
    Guard(
        "login-link-of-an-inactive-account",
        "A one-time login link does not sign in an inactive account",
        Patch(_LOGIN, old="if not (user.is_active and user.is_staff):", new="if False:"),
        failing_test=f"{_ONCE}::test_a_link_does_not_sign_in_an_inactive_account",
    ),
    Guard(
        "login-links-are-off",
        "Where one-time logins are off, no link is created",
        Patch(
            _LOGIN,
            old="    if not one_time_login_allowed():\n",
            new="    if False:\n",
        ),
        failing_test=f"{_ONCE}::test_without_one_time_login_links_are_neither_created_nor_accepted",
    ),
    Guard(
        "login-links-are-not-accepted",
        "Where one-time logins are off, no link is accepted",
        Patch(
            _LOGIN,
            old="if not one_time_login_allowed() or link is None or _is_spent(link):",
            new="if link is None or _is_spent(link):",
        ),
        failing_test=f"{_ONCE}::test_without_one_time_login_links_are_neither_created_nor_accepted",
    ),
    Guard(
        "login-link-content-security-policy",
        "The page of a one-time login link has a strict Content-Security-Policy",
        Patch(_LOGIN, old='response["Content-Security-Policy"] = (', new="_ = ("),
        failing_test=f"{_ONCE}::test_the_page_has_a_strict_content_security_policy",
    ),
    Guard(
        "login-link-is-not-cached",
        "The page of a one-time login link is not cached",
        Patch(_LOGIN, old="@never_cache\n", new=""),
        failing_test=f"{_ONCE}::test_the_page_has_a_strict_content_security_policy",
    ),
    Guard(
        "login-link-refusals-are-audited",
        "A one-time login link that is refused is audited",
        Patch(
            _LOGIN,
            old='        event = _audit_event("login_link.refused", "anonymous", link, reason=reason)\n'
            '        record_anonymous(event, peer=request.META.get("REMOTE_ADDR", ""))\n',
            new="        del reason\n",
        ),
        failing_test=_LOGIN_AUDIT,
    ),
    Guard(
        "sign-in-is-audited",
        "A sign-in is audited",
        Patch(
            "decisions/admin/sign_in.py",
            old='@receiver(user_logged_in, dispatch_uid="continuity_signed_in")\n',
            new="",
        ),
        failing_test=_LOGIN_AUDIT,
    ),
    Guard(
        "failed-sign-in-is-audited",
        "A failed sign-in is audited",
        Patch(
            "decisions/admin/sign_in.py",
            old='@receiver(user_login_failed, dispatch_uid="continuity_sign_in_failed")\n',
            new="",
        ),
        failing_test=f"{_ONCE}::test_a_failed_sign_in_is_audited_without_the_typed_name",
    ),
)

_LIMITS = f"{_CONTRACT}/test_json_limits.py::test_a_value_outside_the_limits_is_refused"

_VALIDATION = (
    Guard(
        "json-field-names",
        "Field names of a body are checked as its texts are",
        Patch(_JSON, old="return [*item.keys(), *item.values()]", new="return [*item.values()]"),
        failing_test=f"{_LIMITS}[a NUL in a field name]",
    ),
    Guard(
        "json-endless-nesting",
        "A body that is nested without end is an error of the caller",
        Patch(_JSON, old="except RecursionError:", new="except KeyError:"),
        failing_test=f"{_LIMITS}[endless nesting]",
    ),
    Guard(
        "object-size",
        "An object of more than 256 KiB is refused",
        Patch(_OBJECTS, old="if len(orjson.dumps(payload)) > MAX_PAYLOAD:", new="if False:"),
        failing_test="tests/decisions/continuity/test_user_objects.py::test_an_object_that_is_too_large_is_refused",
    ),
    Guard(
        "message-size",
        "A chat message of more than 64 KiB in UTF-8 is refused",
        Patch(_CHAT, old="if size > MESSAGE_BYTES:", new="if False:"),
        failing_test=f"{_CONTRACT}/test_chat_rows.py::"
        "test_a_message_of_64_kib_is_accepted_and_one_byte_more_is_refused",
    ),
)

_FAILURES = "tests/decisions/api/test_internal_errors.py"
_HEADERS = "tests/config/test_page_headers.py"

_RESPONSES = (
    Guard(
        "error-hides-database",
        "The response to an error of the database does not contain its text",
        Patch(
            _ERRORS,
            old='StorageUnavailable("The database is unavailable.",',
            new="StorageUnavailable(str(error),",
        ),
        failing_test=f"{_FAILURES}::test_an_unavailable_database_answers_a_retryable_error",
    ),
    Guard(
        "readiness-hides-addresses",
        "The readiness route does not contain the text of an error",
        Patch(
            "config/health.py",
            old='"reason": f"{type(error).__name__}. {hint}"',
            new='"reason": f"{error}. {hint}"',
        ),
        failing_test="tests/config/test_health.py::"
        "test_an_unavailable_redis_is_reported_without_its_address",
    ),
    Guard(
        "page-nosniff",
        "A browser does not guess the media type of a page",
        Patch(
            _SETTINGS,
            old='    "django.middleware.security.SecurityMiddleware",\n',
            new="",
        ),
        failing_test=f"{_HEADERS}::test_an_admin_page_is_neither_framed_nor_sniffed",
    ),
    Guard(
        "page-frames",
        "No other site shows a page in a frame",
        Patch(
            _SETTINGS,
            old='    "django.middleware.clickjacking.XFrameOptionsMiddleware",\n',
            new="",
        ),
        failing_test=f"{_HEADERS}::test_an_admin_page_is_neither_framed_nor_sniffed",
    ),
    Guard(
        "session-cookie-scripts",
        "No script reads the session cookie",
        Patch(
            _SETTINGS,
            old="SESSION_COOKIE_HTTPONLY = True",
            new="SESSION_COOKIE_HTTPONLY = False",
        ),
        failing_test=f"{_HEADERS}::test_no_script_reads_the_session_cookie_and_no_other_site_sends_it",
    ),
    Guard(
        "session-cookie-sites",
        "No form of another site sends the session cookie",
        Patch(
            _SETTINGS,
            old='SESSION_COOKIE_SAMESITE = "Lax"',
            new='SESSION_COOKIE_SAMESITE = "None"',
        ),
        failing_test=f"{_HEADERS}::test_no_script_reads_the_session_cookie_and_no_other_site_sends_it",
    ),
)

_DEFAULTS = "tests/config/test_settings_defaults.py"

_CONFIGURATION = (
    Guard(
        "secret-keys-are-long",
        "A shared installation does not start with a short secret key",
        Patch(
            _SETTINGS,
            old="if not CONTINUITY_SECRET_KEYS or min(map(len, CONTINUITY_SECRET_KEYS)) < 32:",
            new="if not CONTINUITY_SECRET_KEYS:",
        ),
        failing_test=f"{_DEFAULTS}::test_a_shared_database_needs_strong_keys[short]",
    ),
    Guard(
        "secret-keys-are-private",
        "Only the owner reads the home of a new installation, which has its keys",
        Patch(
            "config/home.py",
            old="continuity_home.mkdir(mode=0o700, parents=True, exist_ok=True)",
            new="continuity_home.mkdir(parents=True, exist_ok=True)",
        ),
        failing_test=f"{_DEFAULTS}::test_only_the_owner_reads_the_keys_of_a_new_installation",
    ),
    Guard(
        "one-time-logins-default",
        "One-time logins are off where the database is shared",
        Patch(
            _SETTINGS,
            old='env.bool("CONTINUITY_ONE_TIME_LOGIN", EMBEDDED)',
            new='env.bool("CONTINUITY_ONE_TIME_LOGIN", True)',
        ),
        failing_test=f"{_DEFAULTS}::test_one_time_logins_are_off_with_a_shared_database",
    ),
    Guard(
        "debug-default",
        "Debugging is off",
        Patch(_SETTINGS, old="DEBUG = False", new="DEBUG = True"),
        failing_test=f"{_DEFAULTS}::test_by_default_debugging_is_off_and_only_local_names_are_served",
    ),
    Guard(
        "hosts-default",
        "Only the names of this machine are served by default",
        Patch(_SETTINGS, old='default=["127.0.0.1", "localhost", "[::1]"]', new='default=["*"]'),
        failing_test=f"{_DEFAULTS}::test_by_default_debugging_is_off_and_only_local_names_are_served",
    ),
    Guard(
        "model-address-without-credentials",
        "The address of the model's server has no credentials, which pages and logs would show",
        Patch(
            "config/llm.py",
            old="if parts.username or parts.password or parts.query:",
            new="if parts.query:",
        ),
        failing_test="tests/runners/llm/test_settings.py::test_an_invalid_base_url_is_refused_without_being"
        "_repeated[http://me:pass@host/v1]",
    ),
)

_USER_STATE = "tests/decisions/continuity/test_user_state.py"
_USER_OBJECTS = "tests/decisions/continuity/test_user_objects.py"
_OUTCOME_TESTS = "tests/decisions/continuity/test_outcomes.py"
_FOREIGN_OUTCOMES = f"{_OUTCOME_TESTS}::test_unknown_and_foreign_decisions_get_the_same_error"
_FOREIGN_PATHS = (
    "tests/runs/task_templates/test_replay_success_path.py::"
    "test_unknown_foreign_and_other_objects_read_the_same"
)

_CONTINUITY = (
    Guard(
        "owner-scope",
        "Reading a user's state needs the scope",
        Patch(_OWNER, old="    principal.require(scope)\n", new=""),
        failing_test=f"{_USER_STATE}::test_reading_needs_the_scope",
    ),
    Guard(
        "owner-user",
        "A credential reads no user that it may not act for",
        Patch(_OWNER, old="    require_user(principal, user_id)\n    return", new="    return"),
        failing_test=f"{_USER_STATE}::"
        "test_reading_another_user_is_refused_the_same_whether_it_exists_or_not[bob]",
    ),
    Guard(
        "users-of-a-credential",
        "A credential of some users sends no message for another",
        Patch(
            _PRINCIPALS,
            old="return self.acts_for is None or user_id in self.acts_for",
            new="return True",
        ),
        failing_test="tests/decisions/chat/test_chat.py::"
        "test_a_credential_acts_only_for_its_users_and_refusals_are_audited",
    ),
    Guard(
        "state-workspace",
        "The state of a user is not that of the same user id in another workspace",
        Patch(
            _STATE,
            old="AxisValue.objects.filter(workspace_id=owner.workspace_id, user_id=owner.user_id)",
            new="AxisValue.objects.filter(user_id=owner.user_id)",
        ),
        failing_test=f"{_USER_STATE}::test_the_same_user_id_in_two_workspaces_is_two_users",
    ),
    Guard(
        "state-user",
        "The state of one user is not that of another",
        Patch(
            _STATE,
            old="AxisValue.objects.filter(workspace_id=owner.workspace_id, user_id=owner.user_id)",
            new="AxisValue.objects.filter(workspace_id=owner.workspace_id)",
        ),
        failing_test=f"{_USER_STATE}::test_the_state_of_one_user_is_not_that_of_another",
    ),
    Guard(
        "state-range",
        "A value of the state stays within 0 and 1",
        Patch(
            _STATE,
            old="round(min(ceiling, max(0.0, value)), _DIGITS)",
            new="round(value, _DIGITS)",
        ),
        failing_test=f"{_USER_STATE}::test_a_value_stays_within_0_and_1[1.0-1.0]",
    ),
    Guard(
        "state-lock",
        "Concurrent changes of a user's state are all counted",
        Patch(_STATE, old="    owner.lock()\n    axes, now", new="    axes, now"),
        failing_test=f"{_USER_STATE}::test_concurrent_changes_are_all_counted",
    ),
    Guard(
        "objects-workspace",
        "The objects of a user are not those of the same user id in another workspace",
        Patch(
            _OBJECTS,
            old="is_current=True, object__workspace_id=owner.workspace_id,"
            " object__user_id=owner.user_id",
            new="is_current=True, object__user_id=owner.user_id",
        ),
        failing_test=f"{_USER_OBJECTS}::test_another_workspace_has_its_own_objects",
    ),
    Guard(
        "objects-user",
        "The objects of one user are not those of another",
        Patch(
            _OBJECTS,
            old="is_current=True, object__workspace_id=owner.workspace_id,"
            " object__user_id=owner.user_id",
            new="is_current=True, object__workspace_id=owner.workspace_id",
        ),
        failing_test=f"{_USER_OBJECTS}::test_a_list_has_the_objects_of_the_user_newest_first_up_to_a_limit",
    ),
    Guard(
        "success-path-workspace",
        "A run replays no success path of another workspace",
        Patch(
            _OBJECTS,
            old="found = found.filter(object__workspace_id=principal.workspace_id)",
            new="found = found.all()",
        ),
        failing_test=_FOREIGN_PATHS,
    ),
    Guard(
        "success-path-user",
        "A run replays no success path of a user that its caller may not act for",
        Patch(
            _OBJECTS,
            old="if path is None or (principal and not"
            " principal.may_act_for(path.object.user_id)):",
            new="if path is None:",
        ),
        failing_test=_FOREIGN_PATHS,
    ),
    Guard(
        "object-version",
        "A write that names another version than the current one changes nothing",
        Patch(_OBJECTS, old="    _check_version(writing.if_match, current)\n", new=""),
        failing_test=f"{_USER_OBJECTS}::test_a_write_that_names_another_version_changes_nothing[stale]",
    ),
    Guard(
        "object-first-version",
        "A first write cannot name a current version",
        Patch(
            _OBJECTS,
            old="    if current is None:\n        raise VersionConflict",
            new="    if current is None:\n        return\n        raise VersionConflict",
        ),
        failing_test=f"{_USER_OBJECTS}::test_a_first_write_cannot_require_an_existing_version",
    ),
    Guard(
        "object-key",
        "A call that is repeated with its key writes once",
        Patch(_OBJECTS, old="    if writing.key is None:\n", new="    if True:\n"),
        failing_test=f"{_USER_OBJECTS}::test_a_repeated_key_writes_once_and_returns_the_same_answer",
    ),
    Guard(
        "object-key-of-another-write",
        "A key that was used for another write is refused",
        Patch(
            _OBJECTS,
            old="if found is not None and found.call_digest != writing.digest:",
            new="if False:",
        ),
        failing_test=f"{_USER_OBJECTS}::test_a_key_reused_for_a_different_write_is_a_conflict",
    ),
    Guard(
        "object-key-user",
        "A key of one user is not that of another",
        Patch(
            _OBJECTS,
            old="            object__user_id=writing.owner.user_id,\n",
            new="",
        ),
        failing_test=f"{_USER_OBJECTS}::test_a_key_reused_for_a_different_write_is_a_conflict",
    ),
    Guard(
        "object-key-workspace",
        "A key in one workspace is not that in another",
        Patch(
            _OBJECTS,
            old="            object__workspace_id=writing.owner.workspace_id,\n",
            new="",
        ),
        failing_test=f"{_USER_OBJECTS}::test_the_same_key_in_another_workspace_is_another_write",
    ),
    Guard(
        "object-lock",
        "Concurrent writes of an object leave one current version",
        Patch(_OBJECTS, old="            writing.owner.lock()\n", new=""),
        failing_test=f"{_USER_OBJECTS}::test_concurrent_writes_leave_one_current_version",
    ),
    Guard(
        "object-write-is-audited",
        "A write of an object is audited",
        Patch(
            _OBJECTS,
            old='    record(AuditEvent("object.written", writing.by, "userobject", about.id,'
            " *scope, details))\n",
            new="",
        ),
        failing_test=f"{_USER_OBJECTS}::test_a_write_and_a_refused_user_are_audited",
    ),
    Guard(
        "shell-evidence",
        "An inferred Shell needs its evidence",
        Patch(
            "decisions/continuity/success_paths.py",
            old='if call["source"] == "inferred" and not evidence:',
            new="if False:",
        ),
        failing_test=f"{_USER_OBJECTS}::test_an_inferred_shell_needs_its_evidence[None]",
    ),
    Guard(
        "success-path-slots",
        "A success path defines every slot that it uses",
        Patch(
            "decisions/continuity/success_paths.py",
            old="    if missing:\n",
            new="    if False:\n",
        ),
        failing_test=f"{_USER_OBJECTS}::test_an_incomplete_success_path_is_refused[changed0-url]",
    ),
    Guard(
        "outcome-is-reported-once",
        "A decision that has an outcome does not get another",
        Patch(_OUTCOMES, old="if outcome.report_digest != digest:", new="if False:"),
        failing_test=f"{_OUTCOME_TESTS}::test_a_different_second_report_is_refused[other0]",
    ),
    Guard(
        "outcome-user",
        "The outcome of a decision is reported for its user alone",
        Patch(
            _OUTCOMES,
            old='decision_id=call["decision_id"], workspace_id=owner.workspace_id,'
            " user_id=owner.user_id",
            new='decision_id=call["decision_id"], workspace_id=owner.workspace_id',
        ),
        failing_test=_FOREIGN_OUTCOMES,
    ),
    Guard(
        "outcome-workspace",
        "The outcome of a decision is reported in its workspace alone",
        Patch(
            _OUTCOMES,
            old='decision_id=call["decision_id"], workspace_id=owner.workspace_id,'
            " user_id=owner.user_id",
            new='decision_id=call["decision_id"], user_id=owner.user_id',
        ),
        failing_test=_FOREIGN_OUTCOMES,
    ),
    Guard(
        "outcome-needs-the-confirmation",
        "The outcome of a high-risk decision is not recorded before a person confirmed it",
        Patch(_OUTCOMES, old="    _require_confirmed(outcome.decision)\n", new=""),
        failing_test=f"{_OUTCOME_TESTS}::test_a_high_risk_decision_needs_confirmation_before_its_outcome",
    ),
    Guard(
        "outcome-lock",
        "Concurrent reports of one outcome are recorded once",
        Patch(_OUTCOMES, old="    owner.lock()\n    outcome = (", new="    outcome = ("),
        failing_test=f"{_OUTCOME_TESTS}::test_concurrent_reports_add_evidence_once",
    ),
    Guard(
        "reliability-after-a-high-risk-decision",
        "Reliability is not raised within a week of a high-risk decision",
        Patch(
            "decisions/continuity/learning.py",
            old='if Outcome.objects.filter(**own, layer="L4", opened_at__gt=since).exists():',
            new="if False:",
        ),
        failing_test=f"{_OUTCOME_TESTS}::test_reliability_is_frozen_for_a_week_after_an_l4_decision",
    ),
)

_CHAT_TESTS = "tests/decisions/chat/test_chat.py"
_CHAT_KEYS = "tests/decisions/chat/test_answers.py"
_DRAFTS = "tests/decisions/chat/test_concurrent_evaluation.py"
_SEPARATION = "tests/decisions/chat/test_workspace_separation.py"


def _of_another_owner(
    name: str, promise: str, *patches: tuple[str, str, str, str], test: str
) -> tuple[Guard, ...]:
    """Return two guards: without the filter by workspace, and without the filter by user.

    Each patch is a file, its text with both filters, the text without the one by workspace, and the
    text without the one by user.
    """
    return tuple(
        Guard(
            f"{name}-{column}",
            f"{promise} of another {column}",
            tuple(
                Patch(file, old=both, new=(of_user, of_workspace)[column == "user"])
                for file, both, of_user, of_workspace in patches
            ),
            failing_test=f"{_SEPARATION}::{test}[another {column}]",
        )
        for column in ("workspace", "user")
    )


_CHATS = (
    Guard(
        "gate-opens-a-confirmation",
        "A risky message waits for a person",
        Patch(
            "decisions/chat/protocol.py",
            old="opened = open_confirmation(decision) if evaluation.gate.hit else None",
            new="opened = None",
        ),
        failing_test=f"{_CHAT_TESTS}::test_a_risky_message_waits_for_a_person",
    ),
    Guard(
        "decision-is-audited",
        "A decision on a message is audited",
        Patch(
            "decisions/chat/protocol.py",
            old='    _record(principal, decision, trace["trace_id"])\n',
            new="",
        ),
        failing_test=f"{_CHAT_TESTS}::test_a_decision_writes_one_row_of_each_kind",
    ),
    Guard(
        "chat-key",
        "A message that is repeated with its key is decided on once",
        Patch(
            _CHAT,
            old="if is_used or now.conversation_at != turn.seen_at:",
            new="if now.conversation_at != turn.seen_at:",
        ),
        failing_test=f"{_CHAT_KEYS}::test_a_repeated_key_and_body_returns_the_same_answer_without_the_token",
    ),
    Guard(
        "chat-key-of-another-message",
        "A key that was used for another message is refused",
        Patch(
            _ANSWERS,
            old="if row is not None and row.call_digest not in call.digests:",
            new="if False:",
        ),
        failing_test=f"{_CHAT_KEYS}::"
        "test_the_same_key_with_another_body_is_a_conflict_and_audited[changed0]",
    ),
    Guard(
        "chat-conversation-changed",
        "A message is decided on with what was sent to its conversation meanwhile",
        Patch(
            _CHAT,
            old="if is_used or now.conversation_at != turn.seen_at:",
            new="if is_used:",
        ),
        failing_test=f"{_DRAFTS}::test_a_message_is_evaluated_again_after_another_one_in_its_known_session",
    ),
    Guard(
        "chat-newer-events",
        "A message is compared with high-risk events that were recorded meanwhile",
        Patch(_CHAT, old="if now.last_event_id != draft.last_event_id:", new="if False:"),
        failing_test=f"{_DRAFTS}::test_an_l4_event_of_another_session_recorded_meanwhile_counts[0]",
    ),
    Guard(
        "chat-newer-events-user",
        "A message is not compared with events of another user that were recorded meanwhile",
        Patch(
            "decisions/chat/history/retrieval.py",
            old="workspace_id=owner.workspace_id, user_id=owner.user_id, pk__gt=past.last_event_id",
            new="workspace_id=owner.workspace_id, pk__gt=past.last_event_id",
        ),
        failing_test=f"{_DRAFTS}::test_an_l4_event_of_another_user_recorded_meanwhile_does_not_count",
    ),
    Guard(
        "chat-lock",
        "Concurrent calls with one key make one decision",
        Patch(
            _CHAT,
            old="        owner.lock()  # one message of a user at a time\n",
            new="",
        ),
        failing_test=f"{_CHAT_KEYS}::test_twenty_concurrent_calls_with_one_key_make_one_decision",
    ),
    *_of_another_owner(
        "chat-session",
        "A message does not continue a conversation",
        (
            _CONVERSATION,
            "workspace_id=owner.workspace_id, user_id=owner.user_id, session_id=session_id",
            "user_id=owner.user_id, session_id=session_id",
            "workspace_id=owner.workspace_id, session_id=session_id",
        ),
        (
            _CHANGES,
            "WHERE workspace_id = %s AND user_id = %s AND session_id = %s",
            "WHERE %s <> '' AND user_id = %s AND session_id = %s",
            "WHERE workspace_id = %s AND %s <> '' AND session_id = %s",
        ),
        test="test_a_session_of_the_same_name_is_another_conversation",
    ),
    *_of_another_owner(
        "chat-key",
        "A key is not that",
        (
            _ANSWERS,
            "workspace_id=call.owner.workspace_id, user_id=call.owner.user_id,"
            " idempotency_key=call.key",
            "user_id=call.owner.user_id, idempotency_key=call.key",
            "workspace_id=call.owner.workspace_id, idempotency_key=call.key",
        ),
        (
            _CHANGES,
            "WHERE workspace_id = %s AND user_id = %s AND idempotency_key = %s",
            "WHERE %s <> '' AND user_id = %s AND idempotency_key = %s",
            "WHERE workspace_id = %s AND %s <> '' AND idempotency_key = %s",
        ),
        test="test_the_same_key_is_another_message",
    ),
    *_of_another_owner(
        "chat-past",
        "A message is not compared with events",
        (
            "decisions/chat/history/signatures.py",
            "Event.objects.filter(workspace_id=owner.workspace_id, user_id=owner.user_id)",
            "Event.objects.filter(user_id=owner.user_id)",
            "Event.objects.filter(workspace_id=owner.workspace_id)",
        ),
        test="test_an_event_of_another_owner_is_not_compared",
    ),
    *_of_another_owner(
        "chat-failures",
        "The score of a message is not lowered by failures",
        (
            "decisions/chat/history/retrieval.py",
            "            workspace_id=owner.workspace_id,\n            user_id=owner.user_id,\n",
            "            user_id=owner.user_id,\n",
            "            workspace_id=owner.workspace_id,\n",
        ),
        test="test_a_failure_of_another_owner_lowers_no_score",
    ),
)

_ADMIN_ACCESS = (
    "tests/runs/admin/test_permissions.py::test_no_row_is_added_changed_or_deleted_by_a_superuser"
)
_READ_ONLY = "decisions/admin/read_only.py"
_TOKEN_ADMIN = "decisions/admin/tokens.py"
_TOKEN_RIGHTS = (
    "tests/decisions/admin/test_tokens.py::test_both_actions_need_their_permission_and_a_post"
)
_RULE_ADMIN = "decisions/admin/policy/rules.py"
_RULE_REVIEW = "decisions/admin/policy/review.py"
_RULE_FORMS = "tests/decisions/admin/test_rule_forms.py"
_RULE_RIGHTS = f"{_PAGES}::test_a_user_with_view_permission_cannot_change_rules"
_OPERATORS = "tests/decisions/admin/test_operators.py"
_OPERATOR_RIGHTS = "tests/decisions/admin/test_operator_permissions.py"
_AUDIT_ADMIN = "tests/decisions/admin/test_audit_log.py"

_ADMIN = (
    *(
        Guard(
            f"admin-read-only-{verb}",
            f"Not even a superuser can {verb} a row in the admin",
            Patch(
                _READ_ONLY,
                old=f'"""Refuse to {verb} rows."""\n        return False',
                new=f'"""Refuse to {verb} rows."""\n        return True',
            ),
            failing_test=_ADMIN_ACCESS,
        )
        for verb in ("add", "change", "delete")
    ),
    Guard(
        "admin-audit-export-permission",
        "Exporting the audit log needs its permission",
        Patch(
            "decisions/admin/audit.py",
            old="if not self.has_view_permission(request):",
            new="if False:",
        ),
        failing_test=f"{_AUDIT_ADMIN}::test_an_export_needs_the_permission_and_a_post",
    ),
    Guard(
        "admin-audit-forged-row",
        "The page of an audit row shows that its MAC is wrong",
        Patch("decisions/admin/audit.py", old="if is_genuine(entry):", new="if True:"),
        failing_test=f"{_AUDIT_ADMIN}::test_an_entry_with_a_wrong_mac_is_reported",
    ),
    Guard(
        "admin-redacts-json",
        "JSON on an admin page contains no secret",
        Patch(_FORMATTING, old="safe = redact(value)", new="safe = value"),
        failing_test=f"{_AUDIT_ADMIN}::test_metadata_is_escaped_and_without_secrets",
    ),
    Guard(
        "admin-redacts-lines",
        "A list of the admin contains no secret",
        Patch(
            _FORMATTING,
            old='return shorten(redact(" · ".join(parts)), length)',
            new='return shorten(" · ".join(parts), length)',
        ),
        failing_test=f"{_AUDIT_ADMIN}::test_metadata_is_escaped_and_without_secrets",
    ),
    Guard(
        "admin-creates-token",
        "Creating a token in the admin needs its permission",
        Patch(
            "decisions/admin/secret_creation.py",
            old="if not self.has_create_permission(request):",
            new="if False:",
        ),
        failing_test=_TOKEN_RIGHTS,
    ),
    Guard(
        "admin-revokes-token",
        "Revoking a token in the admin needs its permission",
        Patch(
            _TOKEN_ADMIN,
            old="        if not self.has_revoke_permission(request):\n"
            "            raise PermissionDenied\n        self._revoke",
            new="        self._revoke",
        ),
        failing_test=_TOKEN_RIGHTS,
    ),
    Guard(
        "admin-changes-token",
        "Changing the users of a token in the admin needs its permission",
        Patch(
            _TOKEN_ADMIN,
            old="        if not self.has_revoke_permission(request):\n"
            "            raise PermissionDenied\n        form =",
            new="        form =",
        ),
        failing_test=_TOKEN_RIGHTS,
    ),
    Guard(
        "admin-rule-is-read-first",
        "A rule is made only after its effect was shown, as it is when the rule is made",
        Patch(_RULE_REVIEW, old='answer.get("shown") == self.digest', new="True"),
        failing_test=f"{_RULE_FORMS}::test_a_rule_is_shown_again_if_it_does_more_than_was_read",
    ),
    Guard(
        "admin-wide-rule",
        "A wide rule is made only after a person agreed to its width",
        Patch(_RULE_REVIEW, old="(not self.is_wide or", new="(True or"),
        failing_test=f"{_RULE_FORMS}::test_a_wide_rule_names_what_it_opens_and_needs_a_tick",
    ),
    Guard(
        "admin-retirement-is-read-first",
        "A rule is retired only after the effect was shown, as it is when the rule is retired",
        Patch(
            _RULE_ADMIN,
            old='if request.method != "POST" or not review.is_agreed(request.POST):',
            new='if request.method != "POST":',
        ),
        failing_test=f"{_RULE_FORMS}::test_a_rule_is_retired_after_what_that_opens_was_read",
    ),
    Guard(
        "admin-rule-on-later-targets",
        "A rule for a runner's tool on every target is wide, also while one target offers it",
        Patch(
            "decisions/authorization/rule_reach.py",
            old="self.rule.tool == ANY_TOOL or self.covers_later_targets or",
            new="self.rule.tool == ANY_TOOL or",
        ),
        failing_test=f"{_RULE_FORMS}::"
        "test_a_rule_for_a_runners_tool_on_every_target_is_wide[published]",
    ),
    Guard(
        "admin-rule-link",
        "A link to the form of a rule fills in no verdict and nothing wide",
        Patch(
            _RULE_ADMIN,
            old="initial=named_in(request.GET.dict())",
            new="initial=request.GET.dict()",
        ),
        failing_test=f"{_RULE_FORMS}::test_a_link_fills_in_no_verdict_and_nothing_wide",
    ),
    Guard(
        "admin-content-policy",
        "Pages of the admin have a Content-Security-Policy",
        Patch(
            _SETTINGS,
            old='    "decisions.admin.content_policy.ContentPolicyMiddleware",\n',
            new="",
        ),
        failing_test="tests/config/test_page_headers.py::"
        "test_a_page_of_the_admin_runs_scripts_of_this_servers_files_alone",
    ),
    Guard(
        "admin-creates-rule",
        "Creating a policy rule in the admin needs its permission",
        Patch(_RULE_ADMIN, old="if not self.has_create_permission(request):", new="if False:"),
        failing_test=_RULE_RIGHTS,
    ),
    Guard(
        "admin-changes-rule",
        "Changing a policy rule in the admin needs its permission",
        Patch(
            _RULE_ADMIN,
            old="        if not self.has_operate_permission(request):\n"
            "            raise PermissionDenied\n        rule =",
            new="        rule =",
        ),
        failing_test=_RULE_RIGHTS,
    ),
    Guard(
        "admin-retires-rule",
        "Retiring a policy rule in the admin needs its permission",
        Patch(
            _RULE_ADMIN,
            old="        if not self.has_operate_permission(request):\n"
            "            raise PermissionDenied\n        try:",
            new="        try:",
        ),
        failing_test=_RULE_RIGHTS,
    ),
    Guard(
        "admin-creates-principal",
        "Creating a tenant in the admin needs its permission",
        Patch(
            "decisions/admin/principals.py",
            old='return request.user.has_perm(f"{self.opts.app_label}.{codename}")',
            new="return bool(codename)",
        ),
        failing_test="tests/decisions/admin/test_principals.py::"
        "test_creating_a_row_needs_its_permission[tenant-fields0]",
    ),
    Guard(
        "admin-visible-names",
        "The name of a tenant has no invisible characters",
        Patch(
            "decisions/admin/principals.py",
            old='if not str(data.get("name", "")).isprintable():',
            new="if False:",
        ),
        failing_test="tests/decisions/admin/test_principals.py::"
        "test_an_invalid_or_duplicate_name_creates_nothing[a\\u202eb]",
    ),
    Guard(
        "admin-bulk-deletion",
        "Operators are not deleted in bulk, which would not be audited",
        Patch(
            "decisions/admin/operators.py",
            old="    actions: Any = None  # Django's bulk delete would run outside of a"
            " transaction\n",
            new="",
        ),
        failing_test=f"{_OPERATORS}::test_operators_are_not_deleted_in_bulk",
    ),
    Guard(
        "admin-operator-is-audited",
        "A change of an operator is audited",
        Patch(
            "decisions/admin/operators.py",
            old='        record(_audit_event(request, "changed", obj, fields=fields,'
            " **_grants_in(message)))\n",
            new="",
        ),
        failing_test=f"{_OPERATORS}::"
        "test_an_operator_is_added_changed_and_deleted_and_each_event_is_audited",
    ),
    Guard(
        "admin-superuser-flag",
        "Superusers alone make superusers",
        Patch(
            "decisions/admin/operators.py",
            old='return fields if cast(Account, request.user).is_superuser else (*fields, "is_superuser")',
            new="return fields",
        ),
        failing_test=f"{_OPERATOR_RIGHTS}::test_an_operator_cannot_become_superuser",
    ),
    Guard(
        "admin-operator-with-more-permissions",
        "An operator with more permissions is not changed by one with fewer",
        Patch(
            "decisions/admin/operators.py",
            old="return not _permissions_of(row).exclude(pk__in=own).exists()",
            new="return True",
        ),
        failing_test=f"{_OPERATOR_RIGHTS}::"
        "test_a_group_with_more_permissions_is_not_changed_or_deleted",
    ),
    Guard(
        "admin-grants-own-permissions",
        "An operator grants only permissions of their own",
        Patch(
            "decisions/admin/operators.py",
            old="return Permission.objects.all() if account.is_superuser else _permissions_of(account)",
            new="return Permission.objects.all()",
        ),
        failing_test=f"{_OPERATOR_RIGHTS}::test_an_operator_grants_only_permissions_of_their_own",
    ),
    Guard(
        "admin-grants-own-groups",
        "An operator adds others only to groups whose permissions they have",
        Patch(
            "decisions/admin/operators.py",
            old="return Group.objects.exclude(permissions__in=lacking)",
            new="return Group.objects.all()",
        ),
        failing_test=f"{_OPERATOR_RIGHTS}::"
        "test_an_operator_adds_others_only_to_groups_whose_permissions_they_have",
    ),
    Guard(
        "admin-own-password-is-audited",
        "A change of one's own password is audited",
        Patch(
            "decisions/admin/operators.py",
            old='        record(_audit_event(request, "changed", cast(Account, request.user),'
            ' fields=["Password"]))\n',
            new="        pass\n",
        ),
        failing_test=f"{_OPERATORS}::test_a_change_of_ones_own_password_is_audited_too",
    ),
    Guard(
        "admin-rule-change-is-audited",
        "A change of a policy rule is audited",
        Patch(
            _RULES,
            old='        _record("policy_rule.changed", actor, rule, owner,'
            " before=old.recorded_fields())\n",
            new="",
        ),
        failing_test="tests/decisions/authorization/test_policy.py::test_a_changed_rule_keeps_its_previous_version",
    ),
)

_CONTRADICTION = (
    "tests/decisions/models/test_decision_constraints.py::test_a_row_cannot_contradict_itself"
)
_REPETITION = (
    "tests/decisions/models/test_decision_constraints.py::test_a_row_cannot_repeat_another"
)
# Constraint, table, and what the database refuses.
_CHECKS = (
    ("token_trust_level", "token", "a token with an unknown trust level"),
    ("decision_kind_known", "decision", "a decision of an unknown kind"),
    ("decision_mode_known", "decision", "a decision with an unknown mode"),
    ("confirmation_status_known", "confirmation", "a confirmation with an unknown status"),
    (
        "confirmation_decided_iff_not_waiting",
        "confirmation",
        "a waiting confirmation with a time of its decision",
    ),
    (
        "confirmation_out_of_band_has_no_token",
        "confirmation",
        "a confirmation out of band with a token",
    ),
    (
        "confirmation_used_only_if_confirmed",
        "confirmation",
        "a confirmation that was used before it was confirmed",
    ),
    ("rule_verdict_known", "policyrule", "a policy rule with an unknown verdict"),
    ("rule_scope_named", "policyrule", "a policy rule of a workspace that it does not name"),
    ("axis_known", "axisvalue", "an unknown axis"),
    ("axis_within_0_and_1", "axisvalue", "a value of an axis above 1"),
    ("object_type_known", "userobject", "an object of an unknown type"),
    ("object_levels_known", "objectversion", "an object with an unknown confidence"),
    ("outcome_status_known", "outcome", "an outcome with an unknown status"),
    (
        "outcome_reported_iff_it_has_a_status",
        "outcome",
        "an outcome with a status and without a time of its report",
    ),
    ("event_layer_known", "event", "an event with an unknown layer"),
)
_UNIQUES = (
    ("decisions_tenant_name_key", "tenant", "two tenants with one name"),
    ("workspace_name_per_tenant", "workspace", "two workspaces of a tenant with one name"),
    ("user_id_per_workspace", "user", "two users of a workspace with one id"),
    ("decisions_token_digest_key", "token", "two tokens with one digest"),
    ("decisions_loginlink_digest_key", "loginlink", "two login links with one digest"),
    ("decisions_decision_deed_key_key", "decision", "two decisions on one tool call"),
    (
        "decisions_confirmation_decision_id_key",
        "confirmation",
        "two confirmations of one decision",
    ),
    ("decisions_outcome_decision_id_key", "outcome", "two outcomes of one decision"),
    ("decisions_event_decision_id_key", "event", "two events of one decision"),
    ("rule_version_once", "policyrule", "two policy rules with one key and version"),
    ("axis_once_per_user", "axisvalue", "two values of one axis of a user"),
    ("object_name_per_user", "userobject", "two objects of a user with one type and name"),
    ("object_version_once", "objectversion", "two versions of an object with one number"),
    ("conversation_per_user", "conversation", "two conversations of a user with one session"),
    ("chat_key_per_user", "chatanswer", "two chat answers of a user with one key"),
    ("decisions_auditseal_pkey", "auditseal", "two seals at one position"),
    ("one_seal_per_entry", "auditseal", "two seals of one audit row"),
    ("one_seal_per_mac", "auditseal", "two seals of one MAC"),
)
# Unique constraints with a condition are indexes, which SQLite can drop too.
_INDEXES = (
    ("rule_in_force_once", "two active policy rules with one scope, tool and target"),
    ("object_one_current", "two current versions of an object"),
)

_CONSTRAINTS = (
    *(
        Guard(
            f"constraint-{name.replace('_', '-')}",
            f"The database refuses {refused}",
            Sql(f"ALTER TABLE decisions_{table} DROP CONSTRAINT {name}"),
            failing_test=f"{test}[{name}]",
        )
        for test, constraints in ((_CONTRADICTION, _CHECKS), (_REPETITION, _UNIQUES))
        for name, table, refused in constraints
    ),
    *(
        Guard(
            f"constraint-{name.replace('_', '-')}",
            f"The database refuses {refused}",
            Sql(f"DROP INDEX {name}", sqlite=f"DROP INDEX {name}"),
            failing_test=f"{_REPETITION}[{name}]",
        )
        for name, refused in _INDEXES
    ),
)

GUARDS = (
    *_RULE_ORDER,
    *_CALLS,
    *_DECIDING,
    *_AUDIT_LOG,
    *_TRANSACTIONS,
    *_EVIDENCE,
    *_SECURITY,
    *_IDENTITY,
    *_VALIDATION,
    *_RESPONSES,
    *_CONFIGURATION,
    *_CONTINUITY,
    *_CHATS,
    *_ADMIN,
    *_CONSTRAINTS,
    *own_browser.DECISIONS,
)
