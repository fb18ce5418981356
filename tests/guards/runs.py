"""Guards of `runs`: admission, lifecycle, queue, journal, submission, suspension, tasks, webhooks,
streaming, admin pages, retention and the agent.
"""

from __future__ import annotations

from tests.guards import own_browser
from tests.guards.guard import Guard, Patch, Sql

_SEARCHES = "tests/runs/task_templates/test_searches_that_did_not_happen.py"
_HTTP_ERRORS = "tests/runs/task_templates/test_http_error_pages.py"
_WHOLE_TEXTS = "tests/runs/task_templates/test_whole_texts.py"
_LOGINS = "tests/runs/task_templates/test_login_keep_session.py"
_FORMS = "tests/runs/task_templates/test_submit_and_verify.py"
_REPLAYS = "tests/runs/task_templates/test_replay_success_path.py"
_LEASES = (
    Guard(
        "lease-epoch",
        "A worker whose lease ended cannot journal a step, even if it has claimed the run again",
        Patch(
            "runs/queue/leases.py",
            old='return {"status": RunStatus.RUNNING, "epoch": self.epoch, **owner}',
            new='return {"status": RunStatus.RUNNING, **owner}',
        ),
        failing_test="tests/runs/journal/test_journal.py::test_a_late_write_with_an_old_lease_is_refused"
        "[w1-a step that is over]",
    ),
    Guard(
        "lease-owner",
        "Only the worker that has the lease writes to a run",
        Patch(
            "runs/queue/leases.py",
            old='return {"status": RunStatus.RUNNING, "epoch": self.epoch, **owner}',
            new='return {"status": RunStatus.RUNNING, "epoch": self.epoch}',
        ),
        failing_test="tests/runs/journal/test_journal.py::test_a_write_of_another_worker_with_the_current_epoch_is_refused"
        "[a step that is over]",
    ),
    Guard(
        "helper-stops-at-cancel",
        "A helper cannot journal a step of a run that was canceled",
        Patch(
            "runs/queue/leases.py",
            old='return {"status": RunStatus.RUNNING, "epoch": self.epoch, **owner}',
            new='status = {} if self.is_helper else {"status": RunStatus.RUNNING}\n'
            '        return {**status, "epoch": self.epoch, **owner}',
        ),
        failing_test="tests/runs/execution/test_work_sharing.py::test_a_helper_cannot_write_to_a_canceled_run",
    ),
    Guard(
        "clock-epoch",
        "A worker whose lease ended cannot change the running time of the run",
        Patch(
            "runs/journal/writer.py",
            old="id=lease.run.id, epoch=lease.epoch, lease_owner=lease.worker_id,",
            new="id=lease.run.id, lease_owner=lease.worker_id,",
        ),
        failing_test="tests/runs/journal/test_journal.py::test_a_late_write_with_an_old_lease_is_refused"
        "[w1-the clock]",
    ),
    Guard(
        "slot-release-epoch",
        "A late release frees no slot of a later lease",
        Patch(
            "runs/lifecycle/slots.py",
            old="Slot.objects.filter(run_id=run_id, epoch=epoch)",
            new="Slot.objects.filter(run_id=run_id)",
        ),
        failing_test="tests/runs/journal/test_journal.py::test_a_late_write_with_an_old_lease_is_refused"
        "[w1-releasing the slot]",
    ),
    Guard(
        "slot-taken-once",
        "A run starts only in a free slot",
        Patch(
            "runs/lifecycle/writes.py",
            old='"SELECT number FROM runs_slot WHERE run_id IS NULL AND number < %s"',
            new='"SELECT number FROM runs_slot WHERE number < %s"',
        ),
        failing_test="tests/runs/lifecycle/test_transition.py::test_a_lease_without_a_free_slot_changes_no_row",
    ),
    Guard(
        "slot-taken-once-on-sqlite",
        "A run starts only in a free slot",
        Patch(
            "runs/lifecycle/writes.py",
            old='"SELECT number FROM runs_slot WHERE run_id IS NULL AND number < %s"',
            new='"SELECT number FROM runs_slot WHERE number < %s"',
        ),
        failing_test="tests/runs/lifecycle/test_transition.py::test_a_lease_without_a_free_slot_changes_no_row",
        database="sqlite",
    ),
    Guard(
        "run-locked-before-its-slot",
        "A claim locks the run before a slot, as the end of a run does, so the two cannot deadlock",
        Patch(
            "runs/lifecycle/writers.py",
            old="EXISTS (SELECT 1 FROM locked) ORDER BY",
            new="true ORDER BY",
        ),
        failing_test="tests/runs/lifecycle/test_locks.py::test_a_claim_that_waits_for_the_run_has_locked_no_slot",
    ),
    Guard(
        "canceled-run-is-locked-first",
        "The artifacts that a worker wrote while its run was canceled expire",
        Patch(
            "runs/lifecycle/transition.py",
            old="            _lock(change.run)\n",
            new="            pass\n",
        ),
        failing_test="tests/runs/lifecycle/test_locks.py::test_an_artifact_written_while_its_run_is_canceled_expires",
    ),
    Guard(
        "deadlock-repeated",
        "A transition that the database rolled back for a deadlock is written again",
        Patch(
            "runs/lifecycle/repeat.py",
            old='frozenset({"40P01", "40001"})',
            new="frozenset[str]()",
        ),
        failing_test="tests/runs/lifecycle/test_locks.py::test_a_transition_that_loses_a_deadlock_is_written_again",
    ),
    Guard(
        "slots-within-the-maximum",
        "After the maximum of concurrent runs was lowered, the slots above it are not used (the"
        " dispatch order and the claim both test it)",
        (
            Patch(
                "runs/lifecycle/writes.py",
                old="run_id IS NULL AND number < %s",
                new="run_id IS NULL AND number < %s + 1000",
            ),
            Patch(
                "runs/queue/dispatch_order.py",
                old="run_id IS NULL AND number < %s",
                new="run_id IS NULL AND number < %s + 1000",
            ),
        ),
        failing_test="tests/runs/queue/test_claims.py::test_slots_above_a_lowered_maximum_are_not_taken",
    ),
)

_CLAIMS = (
    Guard(
        "fair-share",
        "A workspace with few running runs goes before one with many",
        Patch(
            "runs/queue/dispatch_order.py",
            old="workspace_id, 1 FROM runs_slot",
            new="workspace_id, 0 FROM runs_slot",
        ),
        failing_test="tests/runs/queue/test_claims.py::test_a_workspace_with_fewer_running_goes_first",
    ),
    Guard(
        "fair-share-of-concurrent-claims",
        "Claims made at once share fairly: each counts the runs that the others are taking",
        Patch(
            "runs/queue/dispatch_order.py",
            old="waiting.taken + ROW_NUMBER() OVER (",
            new="waiting.taken + 0 * ROW_NUMBER() OVER (",
        ),
        failing_test="tests/runs/queue/test_claims.py::"
        "test_claims_at_once_take_the_runs_that_claims_in_turn_would_take",
    ),
    Guard(
        "claim-skips-locked-runs",
        "A claim does not wait for a run that another worker is claiming",
        Patch(
            "runs/queue/leases.py",
            old="next_run(worker_id, lock=locks)",
            new="next_run(worker_id, lock=False)",
        ),
        failing_test="tests/runs/queue/test_claims.py::test_sixteen_claimers_look_once_for_each_run",
    ),
    Guard(
        "claim-once",
        "Of many workers that claim a run at once, one gets its lease",
        Patch(
            "runs/lifecycle/state_machine.py",
            old='guard = {"status": run.status, "epoch": run.epoch, "ready": True,'
            ' "lease_owner": None}',
            new="guard: dict[str, Any] = {}",
        ),
        failing_test="tests/runs/queue/test_claims.py::test_one_of_many_workers_gets_the_lease_of_a_run",
    ),
    Guard(
        "claim-epoch",
        "A run that was claimed and released since it was read is not claimed as it was",
        Patch(
            "runs/lifecycle/state_machine.py",
            old='"epoch": run.epoch, "ready": True,',
            new='"ready": True,',
        ),
        failing_test="tests/runs/queue/test_claims.py::test_a_run_that_was_leased_since_it_was_chosen_is_not_claimed",
    ),
    Guard(
        "claim-ready",
        "A run that was held back since it was chosen is not claimed",
        Patch(
            "runs/lifecycle/state_machine.py",
            old='"epoch": run.epoch, "ready": True,',
            new='"epoch": run.epoch,',
        ),
        failing_test="tests/runs/conversations/test_takeover.py::test_a_run_held_back_since_it_was_chosen_is_not_claimed",
    ),
    Guard(
        "session-claimed-once",
        "A run whose session another run took since it was chosen is not claimed",
        Patch(
            "runs/lifecycle/session_lease.py",
            old="    row.filter(closed_at__isnull=True).update(worker_id=worker_id)\n"
            "    return run_using(run.session_id) in (None, run.id)",
            new="    row.filter(closed_at__isnull=True).update(worker_id=worker_id)\n"
            "    return True",
        ),
        failing_test="tests/runs/sessions/test_sessions.py::test_a_run_whose_session_was_taken_since_it_was_chosen_waits",
    ),
    Guard(
        "session-is-exclusive",
        "The database refuses two running runs in one named session",
        Sql(
            "DROP INDEX run_session_is_exclusive",
            sqlite="DROP INDEX run_session_is_exclusive",
        ),
        failing_test="tests/runs/sessions/test_sessions.py::test_the_database_refuses_two_runs_in_one_session",
    ),
    Guard(
        "session-stays-with-its-worker",
        "A run is left to the live worker that has its session open",
        Patch(
            "runs/queue/dispatch_order.py",
            old="runners_browsersession session WHERE session.id = runs_run.session_id",
            new="runners_browsersession session WHERE 1 = 0",
        ),
        failing_test="tests/runs/sessions/test_sessions.py::test_a_run_goes_to_the_worker_that_holds_its_session",
    ),
    Guard(
        "pinned-run-stays-with-its-worker",
        "A suspended run whose page a live worker holds is resumed by that worker",
        Patch(
            "runs/queue/dispatch_order.py",
            old="AND (pinned_worker IS NULL OR pinned_worker NOT IN (",
            new="AND (1 = 1 OR pinned_worker NOT IN (",
        ),
        failing_test="tests/runs/queue/test_claims.py::test_a_run_pinned_to_a_live_worker_is_claimed_by_it_alone",
    ),
    Guard(
        "template-version",
        "A worker claims no run whose template has a higher major version than its own",
        Patch(
            "runs/queue/eligibility.py",
            old="AND ({versions})",
            new="AND ({versions} OR 1 = 1)",
        ),
        failing_test="tests/runs/queue/test_eligibility.py::"
        "test_a_run_that_needs_newer_code_waits_for_a_worker_that_has_it[test_stepwise-2.0.0]",
    ),
    Guard(
        "heartbeat-compare-and-set",
        "A worker whose heartbeat advanced since it was read keeps its leases",
        Patch(
            "runs/journal/lease_expiry.py",
            old="Worker.objects.filter(id=worker_id, beat=beat, lost_at__isnull=True)",
            new="Worker.objects.filter(id=worker_id, lost_at__isnull=True)",
        ),
        failing_test="tests/runs/journal/test_lease_expiry.py::"
        "test_a_worker_whose_heartbeat_advances_meanwhile_keeps_its_leases",
    ),
    Guard(
        "lease-lost-after",
        "A worker keeps its leases until its heartbeat stopped for the whole lease duration",
        Patch(
            "runs/journal/lease_expiry.py",
            old="if gone or unchanged_s >= settings.LEASE_LOST_S:",
            new="if gone or unchanged_s > 1:",
        ),
        failing_test="tests/runs/journal/test_lease_expiry.py::"
        "test_a_worker_is_lost_when_its_heartbeat_stops_for_the_lease_duration",
    ),
    Guard(
        "stray-leases",
        "A lease that a worker took after it was marked lost is ended",
        Patch(
            "runs/journal/lease_expiry.py",
            old="if runs := end_stray_leases():",
            new="if runs := list[str]():",
        ),
        failing_test="tests/runs/journal/test_lease_expiry.py::test_the_reaper_also_ends_stray_leases",
    ),
    Guard(
        "lost-three-times",
        "A run whose worker was lost three times fails instead of being repeated for ever",
        Patch(
            "runs/journal/lease_expiry.py",
            old="if run.losses_without_progress + 1 >= MAX_TIMES_LOST:",
            new="if False:",
        ),
        failing_test="tests/runs/journal/test_lease_expiry.py::test_the_third_lost_worker_fails_the_run",
    ),
    Guard(
        "stale-slots",
        "Only the slots of lost workers and of ended runs are freed",
        Patch(
            "runs/journal/lease_expiry.py",
            old="list(taken.filter(~Q(worker_id__in=_live_workers()) | ~Exists(running)))",
            new="list(taken)",
        ),
        failing_test="tests/runs/journal/test_lease_expiry.py::test_stale_slots_are_freed_and_held_ones_are_not",
    ),
    Guard(
        "worker-gives-up",
        "A worker that cannot write its heartbeat stops its runs before its leases expire",
        Patch(
            "runs/worker/heartbeat.py",
            old="if time.monotonic() - self._last_beat > settings.LEASE_GIVE_UP_S:",
            new="if False:",
        ),
        failing_test="tests/runs/worker/test_worker.py::test_a_worker_without_a_heartbeat_releases_its_runs",
    ),
    Guard(
        "cancel-stops-the-worker",
        "The worker of a canceled run stops its steps",
        Patch(
            "runs/worker/heartbeat.py",
            old='execution.interrupt("canceled")',
            new="pass",
        ),
        failing_test="tests/runs/worker/test_worker.py::test_a_cancel_stops_the_running_step",
    ),
)

_SHARED_RUNS = (
    Guard(
        "helper-owns-its-step",
        "A helper that lost a step to another worker cannot write the step's end",
        Patch(
            "runs/worker/work_sharing.py",
            old="status=StepStatus.STARTED, owner=lease.worker_id\n    )\n    if ours.count()",
            new="status=StepStatus.STARTED\n    )\n    if ours.count()",
        ),
        failing_test="tests/runs/execution/test_work_sharing.py::"
        "test_a_helper_cannot_write_a_step_that_another_worker_was_given",
    ),
    Guard(
        "helper-lost-three-times",
        "A step whose helper was lost three times fails",
        (
            Patch(
                "runs/worker/work_sharing.py",
                old="if step.attempts >= MAX_TIMES_LOST]",
                new="if False]",
            ),
            Patch(
                "runs/worker/work_sharing.py",
                old="if step.attempts < MAX_TIMES_LOST]",
                new="]",
            ),
        ),
        failing_test="tests/runs/execution/test_work_sharing.py::"
        "test_a_step_that_loses_three_helpers_fails_and_the_others_succeed",
    ),
    Guard(
        "helpers-only-for-shared-runs",
        "No worker executes steps of another worker's run that is not shared",
        Patch(
            "runs/worker/work_sharing.py",
            old="served_q(), shared=True, status=RunStatus.RUNNING,",
            new="served_q(), status=RunStatus.RUNNING,",
        ),
        failing_test="tests/runs/execution/test_work_sharing.py::test_a_run_that_is_not_shared_stays_with_its_worker",
    ),
)

_EFFECTS = (
    Guard(
        "once-step-not-repeated-after-a-loss",
        "A step with the effect once that a lost worker had started is not repeated",
        Patch(
            "runs/queue/leases.py",
            old='if step.status == StepStatus.STARTED and step.effect != "once":',
            new="if step.status == StepStatus.STARTED:",
        ),
        failing_test="tests/runs/worker/test_worker.py::test_a_once_step_interrupted_by_a_drain_is_not_repeated",
    ),
    Guard(
        "once-step-not-retried",
        "A step with the effect once that failed is not retried",
        Patch(
            "runs/execution/engine.py",
            old="if row.effect == Effect.ONCE or is_late or",
            new="if is_late or",
        ),
        failing_test="tests/runs/execution/test_engine.py::test_a_once_step_is_never_retried",
    ),
    Guard(
        "once-step-not-repeated-for-its-page",
        "A step with the effect once is not repeated to restore a lost page",
        Patch(
            "runs/execution/page_recovery.py",
            old="        if step.effect == Effect.ONCE:\n            raise _not_repeated(step)\n",
            new="        pass\n",
        ),
        failing_test="tests/runs/execution/test_page_recovery.py::"
        "test_a_finished_submit_is_not_repeated_to_verify_it",
    ),
    Guard(
        "once-step-ends-during-a-drain",
        "A draining worker does not interrupt a step with the effect once at once",
        Patch(
            "runs/execution/engine.py",
            old="self.running.cancel([n for n in running if self.steps[n].effect != Effect.ONCE])",
            new="self.running.cancel(running)",
        ),
        failing_test="tests/runs/worker/test_worker.py::test_a_drain_waits_for_a_once_step_to_end",
    ),
    Guard(
        "no-resubmit-after-an-effect",
        "A canceled run whose steps may have had an effect does not suggest the same submit again",
        Patch(
            "runs/journal/outcome.py",
            old="again=is_harmless and not run.holds_secrets,",
            new="again=not run.holds_secrets,",
        ),
        failing_test="tests/runs/queries/test_next_actions.py::"
        "test_a_canceled_run_with_possible_effects_suggests_reading_its_events",
    ),
    Guard(
        "steps-stop-at-a-failure",
        "No step starts after a failed one where the template stops on error",
        Patch(
            "runs/execution/engine.py",
            old="if self.waits or (broken and self.template.stops_at_failed_step):",
            new="if self.waits:",
        ),
        failing_test="tests/runs/execution/test_engine.py::"
        "test_no_step_runs_after_a_failed_one_where_the_template_stops_on_error",
    ),
    Guard(
        "no-step-after-the-timeout",
        "A run whose time was used up starts no step",
        Patch(
            "runs/execution/engine.py",
            old="if self.pending and time.monotonic() >= self._deadline:",
            new="if False:",
        ),
        failing_test="tests/runs/execution/test_timeouts.py::"
        "test_a_run_whose_time_was_used_up_by_lost_workers_starts_no_step",
    ),
    Guard(
        "no-step-with-an-expired-claim",
        "A claim starts no step of a run whose time was used up in the queue",
        Patch(
            "runs/journal/claimed_steps.py",
            old="if run.epoch > 0 or template is None or remaining_ms(run) <= 0:",
            new="if run.epoch > 0 or template is None:",
        ),
        failing_test="tests/runs/execution/test_timeouts.py::"
        "test_time_in_the_queue_counts_in_sync_mode_and_an_expired_run_starts_no_step",
    ),
    Guard(
        "streamed-bytes",
        "The streamed events of a run have a maximum size",
        Patch(
            "runs/execution/event_buffer.py",
            old="        if self._stored >= MAX_STREAMED_BYTES:\n            return\n",
            new="",
        ),
        failing_test="tests/runs/execution/test_engine.py::"
        "test_streamed_events_have_a_size_limit_and_the_last_is_marked_truncated",
    ),
    Guard(
        "defect-is-not-shown",
        "A caller sees of a defect in a step its error id alone",
        Patch(
            "runs/journal/step_records.py",
            old='f"The step failed with an internal error; see {error_id} in the server\'s log.",',
            new='f"{error!r} {error_id}",',
        ),
        failing_test="tests/runs/execution/test_engine.py::test_a_defect_in_a_step_is_reported_by_an_error_id_alone",
    ),
    Guard(
        "storable-output",
        "An output that the database cannot store does not fail the run",
        Patch(
            "runs/journal/step_records.py",
            old="    output = storable(output)\n",
            new="",
        ),
        failing_test="tests/runs/execution/test_engine.py::test_a_step_may_output_any_value",
    ),
    Guard(
        "event-number-with-its-event",
        "The number of a task's event and the event commit together",
        Patch(
            "runs/conversations/log.py",
            old="@transaction.atomic(savepoint=False)\n",
            new="",
        ),
        failing_test="tests/runs/conversations/test_tasks.py::"
        "test_an_event_number_and_its_event_commit_together_or_not_at_all",
    ),
)

_TOOL_CALLS = (
    Guard(
        "drain-claims-nothing",
        "A thread that waits to claim when the drain begins claims nothing",
        Patch(
            "runs/worker/worker.py",
            old="if self.draining:  # since this thread",
            new="if False:  # since this thread",
        ),
        failing_test="tests/runs/worker/test_worker.py::"
        "test_a_thread_that_waits_to_claim_during_a_drain_claims_nothing",
    ),
    Guard(
        "unanswered-claim-released",
        "A run whose claim was committed although the connection broke is released",
        Patch("runs/worker/worker.py", old=" self._release_unanswered_claim,", new=""),
        failing_test="tests/runs/worker/test_worker.py::"
        "test_a_claim_that_was_committed_without_an_answer_is_released_and_executed[once]",
    ),
    Guard(
        "call-start-epoch",
        "A worker whose lease ended starts no tool call: the statement that opens it tests the"
        " epoch",
        Patch(
            "runs/lifecycle/in_flight_calls.py",
            old='"id = %s AND epoch = %s AND status = %s"',
            new='"id = %s AND (epoch = %s OR TRUE) AND status = %s"',
        ),
        failing_test="tests/runs/lifecycle/test_in_flight_calls.py::"
        "test_the_calls_of_a_lost_worker_are_ended_and_it_starts_no_more",
    ),
    Guard(
        "call-start-status",
        "No tool call of a canceled run starts: the statement that opens it tests the status",
        Patch(
            "runs/lifecycle/in_flight_calls.py",
            old='"id = %s AND epoch = %s AND status = %s"',
            new='"id = %s AND epoch = %s AND (status = %s OR TRUE)"',
        ),
        failing_test="tests/runs/lifecycle/test_in_flight_calls.py::test_a_worker_whose_run_was_canceled_starts_no_call",
    ),
    Guard(
        "call-start-lease-on-sqlite",
        "A worker whose lease ended starts no tool call",
        Patch(
            "runs/lifecycle/in_flight_calls.py",
            old="rows = Run.objects.filter(id=run.id, epoch=run.epoch, status=RunStatus.RUNNING)",
            new="rows = Run.objects.filter(id=run.id)",
        ),
        failing_test="tests/runs/lifecycle/test_in_flight_calls.py::"
        "test_the_calls_of_a_lost_worker_are_ended_and_it_starts_no_more",
        database="sqlite",
    ),
    Guard(
        "call-ends-once",
        "The end of a call that was aborted is not recorded a second time",
        Patch(
            "runs/lifecycle/in_flight_calls.py",
            old="    if not _delete(OpenCall.objects.filter(id=call_id)):\n        return False\n",
            new="",
        ),
        failing_test="tests/runs/lifecycle/test_in_flight_calls.py::"
        "test_a_direct_call_on_another_machine_is_aborted_after_an_hour",
    ),
    Guard(
        "call-ends-with-the-lease",
        "A tool call in flight is recorded as interrupted when the lease ends",
        Patch(
            "runs/lifecycle/transition.py",
            old="        abort_calls(change.run.id, change.abort_code)",
            new="        pass",
        ),
        failing_test="tests/runs/lifecycle/test_in_flight_calls.py::test_a_stopping_worker_ends_the_calls_it_interrupts",
    ),
    Guard(
        "live-calls-are-not-aborted",
        "The scheduler aborts only direct calls whose process is gone",
        Patch(
            "runs/lifecycle/in_flight_calls.py",
            old="if call.opened_at < oldest or has_ended(call.process)]",
            new="]",
        ),
        failing_test="tests/runs/lifecycle/test_in_flight_calls.py::"
        "test_the_scheduler_ends_direct_calls_of_a_killed_process",
    ),
    Guard(
        "cached-policy-tested",
        "A rule created since the worker cached policy applies to the next call: the statement that"
        " opens it tests the stamp of the rules",
        Patch(
            "runs/admission/authorization.py",
            old='Authorization(verdict, "allow", precondition=policy.precondition)',
            new='Authorization(verdict, "allow")',
        ),
        failing_test="tests/runs/admission/test_cached_admission_of_runner_calls.py::test_a_new_deny_rule_applies_to_the_next_call",
    ),
    Guard(
        "cached-target-tested",
        "A target changed since the worker cached it is read again: the statement that opens the"
        " call tests it",
        Patch(
            "runs/admission/step_calls.py",
            old="    preconditions.append(is_unchanged(row))\n",
            new="",
        ),
        failing_test="tests/runs/admission/test_cached_admission_of_runner_calls.py::test_a_target_with_a_new_endpoint_is_called_there",
    ),
    Guard(
        "first-call-tests-its-preconditions",
        "A call that starts with its step starts only if its preconditions hold",
        Patch(
            "runs/lifecycle/writers.py",
            old='f"SELECT r.id FROM r WHERE {wheres}"',
            new='f"SELECT r.id FROM r WHERE TRUE OR {wheres}"',
        ),
        failing_test="tests/runs/admission/test_cached_admission_of_local_calls.py::"
        "test_a_rule_created_during_the_turn_of_the_model_applies_to_its_next_call",
    ),
    Guard(
        "cached-call-waits-for-the-takeover",
        "A call that the cache admits is not made while a person has the page: the statement that"
        " opens it tests the task",
        Patch(
            "runs/admission/step_calls.py",
            old="    preconditions = _page_not_taken_over(run)\n",
            new="    preconditions: list[Precondition] = []\n",
        ),
        failing_test="tests/runs/conversations/test_takeover.py::test_a_call_in_flight_ends_and_no_further_tool_is_called",
    ),
    Guard(
        "call-waits-for-the-takeover",
        "No tool is called while a person has taken over the page",
        Patch(
            "runs/admission/authorization.py",
            old="    if run.task_id is not None and Task.objects.is_taken_over(run.task_id):\n"
            "        return None\n",
            new="",
        ),
        failing_test="tests/runs/conversations/test_takeover.py::test_a_call_in_flight_ends_and_no_further_tool_is_called",
    ),
    Guard(
        "denied-step",
        "A step's call that policy denies is not made",
        Patch(
            "runs/admission/authorization.py",
            old='if authorization.decision == "deny":',
            new="if False:",
        ),
        failing_test="tests/runs/execution/test_answers_to_suspended_runs.py::"
        "test_no_confirmation_is_requested_for_a_denied_step",
    ),
    Guard(
        "confirmation-required",
        "A step's call that policy wants confirmed is not made before",
        Patch(
            "runs/execution/step_context.py",
            old='if authorization is None or authorization.decision == "confirm":',
            new="if authorization is None:",
        ),
        failing_test="tests/runs/execution/test_suspension.py::"
        "test_a_step_that_needs_confirmation_is_not_performed_and_holds_no_slot",
    ),
    Guard(
        "refusal-outlives-its-rule",
        "A call that a person refused is not admitted by the cache once its rule is retired",
        Patch(
            "runs/admission/authorization.py",
            old="    if request.may_have_confirmation:\n        return None\n",
            new="",
        ),
        failing_test="tests/runs/execution/test_answers_to_suspended_runs.py::test_a_refusal_holds_after_its_rule_is_retired",
    ),
    Guard(
        "replayed-call-unchanged",
        "A resumed step that calls another tool, or with other arguments, than before fails",
        Patch(
            "runs/admission/authorization.py",
            old='if call["tool"] != request.tool or call["digest"] not in request.digests:',
            new="if False:",
        ),
        failing_test="tests/runs/execution/test_answers_to_suspended_runs.py::"
        "test_a_resumed_step_that_calls_otherwise_than_before_fails",
    ),
    Guard(
        "approval-of-its-own-call",
        "The approval of a direct call covers that call of its run alone",
        Patch(
            "runs/admission/authorization.py",
            old="is_approved = confirmations.was_approved(\n"
            "            approved, digests=request.subject_digests,"
            " principal_id=request.principal_id\n"
            "        )",
            new="is_approved = True",
        ),
        failing_test="tests/runs/execution/test_answers_to_suspended_runs.py::"
        "test_the_approval_of_another_call_does_not_confirm_a_step",
    ),
)

_SUBMISSION = (
    Guard(
        "submit-policy",
        "A submit that policy denies writes no run",
        Patch(
            "runs/submission/services.py",
            old="    approval = admit_call(request)\n",
            new="    approval = None\n",
        ),
        failing_test="tests/decisions/authorization/test_confirmed_calls.py::test_a_denied_call_is_refused_and_audited",
    ),
    Guard(
        "submit-uses-its-approval",
        "The approval of a submit without a key is valid for one submit",
        Patch(
            "runs/submission/services.py",
            old="            use_approval(approval)\n            if message is not None:",
            new="            if message is not None:",
        ),
        failing_test="tests/decisions/authorization/test_confirmed_calls.py::test_without_a_key_an_approval_is_valid_for_one_call",
    ),
    Guard(
        "submit-scope",
        "A caller without the scope runs:write submits no run",
        Patch(
            "runs/submission/validation.py",
            old='    principal.require("runs:write")\n',
            new="",
        ),
        failing_test="tests/runs/submission/test_submission.py::test_a_submit_without_the_scope_is_refused",
    ),
    Guard(
        "template-trust",
        "A remote caller runs no template that is for local callers",
        Patch(
            "runs/submission/validation.py",
            old="    _check_trust(principal, template)\n",
            new="",
        ),
        failing_test="tests/runs/submission/test_submission.py::"
        "test_a_remote_caller_cannot_use_a_local_template_and_the_refusal_is_audited",
    ),
    Guard(
        "inputs-schema",
        "Inputs that do not fit the template's schema are refused",
        Patch(
            "runs/submission/validation.py",
            old='        check(template.inputs_validator, inputs, where="inputs")\n',
            new="",
        ),
        failing_test="tests/runs/submission/test_submission.py::test_a_refused_submit_leaves_no_run[10]",
    ),
    Guard(
        "template-version-of-a-submit",
        "A submit for another major version of the template is refused",
        Patch(
            "runs/submission/validation.py",
            old='if version is not None and version.split(".")[0] !='
            ' template.version.split(".")[0]:',
            new="if False:",
        ),
        failing_test="tests/runs/submission/test_submission.py::test_a_refused_submit_leaves_no_run[4]",
    ),
    Guard(
        "sync-timeout",
        "A synchronous run has a maximum timeout",
        Patch(
            "runs/submission/validation.py",
            old='if options.get("mode") == "sync" and timeout_ms > settings.SYNC_TIMEOUT_MS:',
            new="if False:",
        ),
        failing_test="tests/runs/submission/test_submission.py::test_a_refused_submit_leaves_no_run[14]",
    ),
    Guard(
        "output-schema-size",
        "An output schema has a maximum size",
        Patch("runs/agent/output_schema.py", old="if size > MAX_BYTES:", new="if False:"),
        failing_test="tests/runs/submission/test_submission.py::test_a_refused_submit_leaves_no_run[18]",
    ),
    Guard(
        "output-schema-patterns",
        "A pattern that repeats a repetition is refused in an output schema",
        Patch(
            "runs/agent/output_schema.py",
            old="if any(_NESTED_REPETITION.search(pattern) for pattern in measured.patterns):",
            new="if False:",
        ),
        failing_test="tests/runs/agent/test_unusual_replies.py::"
        "test_a_hostile_schema_is_rejected_in_the_inputs_too[schema1]",
    ),
    Guard(
        "output-schema-cycles",
        "A reference that leads only to itself is refused in an output schema",
        Patch(
            "decisions/validation/schema_nodes.py",
            old="            if above > MAX_DEPTH or depths.get(node) == 0:",
            new="            if depths.get(node) == 0:\n                return 1\n            if above > MAX_DEPTH:",
        ),
        failing_test="tests/runs/agent/test_unusual_replies.py::"
        "test_a_hostile_schema_is_rejected_in_the_inputs_too[schema2]",
    ),
    Guard(
        "submit-is-atomic",
        "A submit that fails leaves no idempotency key behind",
        Patch(
            "runs/submission/services.py",
            old="    with transaction.atomic():\n        first = claim_key(",
            new="    with ExitStack():\n        first = claim_key(",
        ),
        failing_test="tests/runs/submission/test_submission.py::test_a_failure_of_any_insert_leaves_no_rows[runs_runstep]",
    ),
    Guard(
        "wakeup-after-commit",
        "A wake-up is sent after the run is committed",
        Patch(
            "runs/queue/wakeups.py",
            old="    transaction.on_commit(lambda: send(queue, run.id), robust=True)",
            new="    send(queue, run.id)",
        ),
        failing_test="tests/runs/submission/test_submission.py::test_one_wakeup_is_sent_after_the_commit[keyed]",
    ),
    Guard(
        "broker-outage",
        "A submit succeeds while the broker is unavailable",
        Patch(
            "runs/queue/wakeups.py",
            old="    except Exception as error:  # noqa: BLE001  (any broker failure: workers look"
            " without wake-ups)\n",
            new="    except ZeroDivisionError as error:\n",
        ),
        failing_test="tests/runs/submission/test_submission.py::test_a_submit_succeeds_while_the_broker_is_unavailable",
    ),
    Guard(
        "key-of-its-principal",
        "An idempotency key returns no run of another principal",
        Patch(
            "runs/submission/idempotency.py",
            old='        "principal_id": submission.principal.id,\n',
            new="",
        ),
        failing_test="tests/runs/submission/test_idempotency.py::test_a_key_belongs_to_its_principal",
    ),
    Guard(
        "key-compares-inputs",
        "A repeated key with other inputs reports the mismatch",
        Patch(
            "runs/submission/idempotency.py",
            old="inputs_match = holder.inputs_digest in submission.inputs_digests",
            new="inputs_match = True",
        ),
        failing_test="tests/runs/submission/test_idempotency.py::"
        "test_a_key_with_other_inputs_returns_the_first_run_and_reports_the_mismatch",
    ),
    Guard(
        "one-run-a-key",
        "The database has one run for each idempotency key of a principal",
        Sql("ALTER TABLE runs_runkey DROP CONSTRAINT run_key_per_principal"),
        failing_test="tests/runs/submission/test_idempotency.py::test_a_key_is_free_after_its_run_expired",
    ),
    Guard(
        "inputs-digest-is-keyed",
        "The stored digest of the inputs cannot be computed without the secret key",
        Patch(
            "runs/submission/validation.py",
            old='return macs("inputs", json_digest([inputs, session_id]))',
            new="return (json_digest([inputs, session_id]).hex(),)",
        ),
        failing_test="tests/runs/submission/test_idempotency.py::test_the_inputs_are_compared_by_a_keyed_digest",
    ),
    Guard(
        "webhook-option",
        "A submit names no webhook of another workspace",
        Patch(
            "runs/webhooks/services.py",
            old="id=webhook_id, workspace_id=principal.workspace_id, disabled_at__isnull=True",
            new="id=webhook_id, disabled_at__isnull=True",
        ),
        failing_test="tests/runs/webhooks/test_webhooks.py::test_a_submit_that_names_an_unusable_webhook_is_refused",
    ),
    Guard(
        "step-tool-scope",
        "A run of tool calls needs the scope of each tool",
        Patch(
            "runs/task_templates/tool_steps.py",
            old="    principal.require(scope_of(tool))\n    if tool.kind == KIND:",
            new="    if tool.kind == KIND:",
        ),
        failing_test="tests/runs/task_templates/test_call_tools.py::test_a_file_tool_in_a_run_requires_the_scope_of_the_tool",
    ),
)

_SECRETS = (
    Guard(
        "core-dumps",
        "A process of the product that crashes writes its memory nowhere",
        Patch("manage.py", old="    forbid_core_dumps()\n", new=""),
        failing_test="tests/runs/installation/health/test_core_dumps.py::"
        "test_a_child_process_that_crashes_leaves_no_core_dump",
    ),
    Guard(
        "secrets-masked-in-inputs",
        "The secret inputs of a run are not in its inputs",
        Patch(
            "runs/submission/secret_inputs.py",
            old="            masked = _replace_at(masked, path, MASK)\n",
            new="",
        ),
        failing_test="tests/runs/submission/test_secret_inputs.py::"
        "test_secrets_are_removed_from_the_inputs_and_encrypted",
    ),
    Guard(
        "secrets-sealed",
        "The secret inputs of a run are stored encrypted",
        Patch(
            "runs/submission/secret_inputs.py",
            old='row.sealed = seal_column(row, "sealed", orjson.dumps(secrets))',
            new="row.sealed = orjson.dumps(secrets)",
        ),
        failing_test="tests/runs/submission/test_secret_inputs.py::"
        "test_secrets_are_removed_from_the_inputs_and_encrypted",
    ),
    Guard(
        "secrets-of-their-steps",
        "No step after the last one that needs the secrets gets them",
        Patch(
            "runs/submission/secret_inputs.py",
            old="return self.values if index <= self.last_step else {}",
            new="return self.values",
        ),
        failing_test="tests/runs/submission/test_secret_inputs.py::"
        "test_secrets_are_removed_from_the_inputs_and_encrypted",
    ),
    Guard(
        "secrets-deleted-at-the-end",
        "The end of a run deletes its secret inputs",
        Patch(
            "runs/lifecycle/state_machine.py",
            old="delete_secrets=ends and run.holds_secrets,",
            new="delete_secrets=False,",
        ),
        failing_test="tests/runs/submission/test_secret_inputs.py::"
        "test_the_end_of_a_run_deletes_its_secrets_in_the_same_commit",
    ),
    Guard(
        "secrets-deleted-after-their-last-step",
        "The secret inputs of a run are deleted with the last step that needs them",
        Patch(
            "runs/execution/resources.py",
            old="            change.index == self.secrets.last_step and change.status not in"
            " UNFINISHED\n",
            new="            False\n",
        ),
        failing_test="tests/runs/submission/test_secret_inputs.py::"
        "test_secrets_are_deleted_after_the_last_step_that_needs_them",
    ),
    Guard(
        "secrets-of-active-runs-are-kept",
        "Only the secret inputs of runs that have ended are deleted as left over",
        Patch(
            "runs/submission/secret_inputs.py",
            old="RunSecret.objects.filter(~Exists(active)).delete()",
            new="RunSecret.objects.all().delete()",
        ),
        failing_test="tests/runs/submission/test_secret_inputs.py::"
        "test_the_sweeper_deletes_secrets_that_remain_after_the_end",
    ),
    Guard(
        "output-masked",
        "A secret that a step outputs is not stored in the journal",
        Patch(
            "runs/execution/engine.py",
            old="step_records.succeeded(row, mask(ended.future.result()), ran, duration_ms)",
            new="step_records.succeeded(row, ended.future.result(), ran, duration_ms)",
        ),
        failing_test="tests/runs/task_templates/test_url_credentials_stored_nowhere.py::"
        "test_a_credential_in_a_url_is_in_no_event_step_result_artifact_or_page",
    ),
    Guard(
        "event-masked",
        "A secret that a step emits is in no event of the run",
        Patch(
            "runs/execution/resources.py",
            old="return NewEvent(event.type, self.masker.value(event.data)) if self.masker else"
            " event",
            new="return event",
        ),
        failing_test="tests/runners/llm/test_api_key_stored_nowhere.py::"
        "test_a_key_that_the_model_outputs_is_masked_in_every_form",
    ),
    Guard(
        "error-masked",
        "A secret in the error of a step is not stored in the journal",
        Patch(
            "runs/execution/engine.py",
            old="error = mask(step_records.error_of(ended.future, self.run,"
            " ends_at=self._deadline))",
            new="error = step_records.error_of(ended.future, self.run, ends_at=self._deadline)",
        ),
        failing_test="tests/runs/task_templates/test_login_credentials_stored_nowhere.py::"
        "test_no_outcome_of_a_login_stores_its_credentials[leaking site]",
    ),
    Guard(
        "artifact-masked",
        "A secret in what a step stores is in no artifact",
        Patch(
            "runs/execution/step_context.py",
            old="        data = self.masker.data(data, mime_type)\n",
            new="",
        ),
        failing_test="tests/runners/llm/test_api_key_stored_nowhere.py::test_a_key_in_a_long_result_is_masked_in_its_artifact",
    ),
    Guard(
        "key-split-across-deltas",
        "An API key that the model outputs in pieces is in no event",
        Patch(
            "runs/agent/loop.py",
            old="    async with aclosing(keep_key_whole(chat)) as parts:\n",
            new="    async with aclosing(chat) as parts:\n",
        ),
        failing_test="tests/runners/llm/test_api_key_stored_nowhere.py::"
        "test_a_key_that_the_model_outputs_is_masked_in_every_form",
    ),
    Guard(
        "secret-runs-are-not-traced",
        "No trace of a run with secret inputs is stored",
        Patch(
            "runs/execution/failure_capture.py",
            old="return template.shares_page and not holds_secrets and",
            new="return template.shares_page and",
        ),
        failing_test="tests/runners/browser/tracing/test_traces.py::test_a_run_with_secret_inputs_is_never_traced",
    ),
    Guard(
        "decision-record-has-no-secret",
        "A secret input is masked in the record of a decision on a call"
        " (the step and the display of arguments mask it)",
        (
            Patch(
                "runs/admission/authorization.py",
                old="        display_args=masker.value(call.args),\n",
                new="",
            ),
            Patch(
                "decisions/authorization/authorize.py",
                old="storable(redact_value(dict(args)))",
                new="storable(dict(args))",
            ),
        ),
        failing_test="tests/runs/submission/test_secret_inputs.py::"
        "test_an_argument_that_equals_a_secret_is_masked_in_records_and_exact_for_who_decides",
    ),
    Guard(
        "typed-text-is-not-logged",
        "The text that an agent types is in no event",
        Patch(
            "runs/agent/first_call.py",
            old="        args = without_text(args)\n",
            new="        pass\n",
        ),
        failing_test="tests/runs/agent/test_real_pages.py::test_a_goal_over_several_pages_is_reached_in_a_task",
    ),
)

_WAITING_RUNS = (
    Guard(
        "resumed-by-its-own-decision",
        "A decision about another call does not resume a run",
        Patch(
            "runs/submission/resume.py",
            old='    if run is None or (run.waiting_for or {}).get("decisionId") != decision.pk:',
            new="    if run is None:",
        ),
        failing_test="tests/runs/execution/test_answers_to_suspended_runs.py::"
        "test_a_decision_about_another_call_does_not_resume_the_run",
    ),
    Guard(
        "resumed-once",
        "A run that was resumed and suspended again since it was read is not resumed",
        Patch(
            "runs/submission/resume.py",
            old='        "lease_owner": None,\n        "epoch": run.epoch,\n',
            new='        "lease_owner": None,\n',
        ),
        failing_test="tests/runs/execution/test_answers_to_suspended_runs.py::"
        "test_a_run_that_was_resumed_and_suspended_again_meanwhile_keeps_waiting",
    ),
    Guard(
        "answer-recorded-once",
        "A question that was answered since it was read takes no second answer",
        Patch(
            "runs/submission/answer.py",
            old="Run.objects.filter(id=run.id, epoch=run.epoch, waiting_for__isnull=False,"
            " ready=False)",
            new="Run.objects.filter(id=run.id, epoch=run.epoch)",
        ),
        failing_test="tests/runs/submission/test_answers.py::"
        "test_an_answer_that_comes_just_after_another_one_is_refused",
    ),
    Guard(
        "answer-of-its-question",
        "An answer is not recorded for a question that the run asked after it was read",
        Patch(
            "runs/submission/answer.py",
            old="Run.objects.filter(id=run.id, epoch=run.epoch, waiting_for__isnull=False,"
            " ready=False)",
            new="Run.objects.filter(id=run.id, waiting_for__isnull=False, ready=False)",
        ),
        failing_test="tests/runs/submission/test_answers.py::"
        "test_an_answer_that_comes_just_after_the_next_question_is_refused",
    ),
    Guard(
        "answer-names-its-question",
        "An answer that names its question is refused once the run asks another one",
        Patch(
            "runs/submission/answer.py",
            old='if waiting.get("type") == "answer" and question_expires_at in (None,'
            ' waiting.get("expiresAt")):',
            new='if waiting.get("type") == "answer":',
        ),
        failing_test="tests/runs/submission/test_answers.py::"
        "test_an_answer_to_one_question_does_not_answer_the_next",
    ),
    Guard(
        "answer-confirms-nothing",
        "An answer does not resume a run that waits for a confirmation",
        Patch(
            "runs/submission/answer.py",
            old='if waiting.get("type") == "answer" and',
            new="if waiting and",
        ),
        failing_test="tests/runs/execution/test_answers_to_suspended_runs.py::test_an_answer_does_not_confirm_a_call",
    ),
    Guard(
        "answer-used-once",
        "The answer to one question is not the answer to the next",
        Patch(
            "runs/execution/suspension.py",
            old="    if ANSWER not in run.options:\n        return {}\n",
            new="    return {}\n",
        ),
        failing_test="tests/runs/submission/test_answers.py::"
        "test_a_question_that_expires_is_not_answered_with_the_earlier_answer",
    ),
    Guard(
        "suspended-run-holds-no-slot",
        "A run that waits for a person holds no slot",
        Patch(
            "runs/execution/suspension.py",
            old="            free_slot=True,\n",
            new="",
        ),
        failing_test="tests/runs/execution/test_suspension.py::"
        "test_a_step_that_needs_confirmation_is_not_performed_and_holds_no_slot",
    ),
    Guard(
        "suspension-is-atomic",
        "A run whose suspension fails leaves no confirmation to decide",
        Patch(
            "runs/execution/suspension.py",
            old='    hit("before_waiting")\n    with transaction.atomic():\n',
            new="    with transaction.atomic():\n        _waiting_for(run, wait)\n"
            '    hit("before_waiting")\n    with transaction.atomic():\n',
        ),
        failing_test="tests/runs/execution/test_suspension.py::"
        "test_a_failure_right_before_suspending_leaves_no_decision",
    ),
    Guard(
        "takeover-ended-before-the-suspension",
        "A run that is suspended for a takeover which has ended already is resumed",
        Patch(
            "runs/execution/suspension.py",
            old="        if isinstance(wait, TakenOver):\n"
            "            resume_if_takeover_ended(run.id)\n",
            new="",
        ),
        failing_test="tests/runs/conversations/test_takeover.py::"
        "test_a_page_returned_before_the_run_suspends_keeps_the_run_running",
    ),
    Guard(
        "cancel-withdraws-confirmations",
        "A cancel withdraws the confirmation that the run waits for",
        Patch(
            "runs/submission/services.py",
            old="                withdraw(run_id=run.id, by=by)\n",
            new="",
        ),
        failing_test="tests/runs/execution/test_answers_to_suspended_runs.py::test_a_suspended_run_can_be_canceled",
    ),
    Guard(
        "cancel-epoch",
        "A cancel also withdraws a confirmation that is requested while it runs",
        Patch(
            "runs/submission/services.py",
            old='guard = {"status": RunStatus(run.status), "epoch": run.epoch}',
            new='guard = {"status": RunStatus(run.status)}',
        ),
        failing_test="tests/runs/execution/test_answers_to_suspended_runs.py::"
        "test_a_confirmation_requested_during_a_cancel_is_withdrawn",
    ),
    Guard(
        "cancel-scope",
        "A caller without the scope runs:write cancels no run",
        Patch(
            "runs/submission/services.py",
            old='    principal.require("runs:write")\n    visible_run(principal, run_id)\n',
            new="    visible_run(principal, run_id)\n",
        ),
        failing_test="tests/runs/lifecycle/test_cancel.py::test_without_the_scope_nothing_is_canceled",
    ),
    Guard(
        "cancel-of-the-own-workspace",
        "A run of another workspace is not canceled",
        Patch(
            "runs/submission/services.py",
            old='    principal.require("runs:write")\n    visible_run(principal, run_id)\n',
            new='    principal.require("runs:write")\n',
        ),
        failing_test="tests/runs/lifecycle/test_cancel.py::test_a_run_of_another_workspace_is_not_found_and_not_canceled",
    ),
    Guard(
        "cancel-policy",
        "A cancel that policy denies changes nothing",
        Patch(
            "runs/submission/services.py",
            old='    approval = admit_call(tool_call_request(principal, "cancel_task_run",'
            ' {"runId": run_id}))\n',
            new="    approval = None\n",
        ),
        failing_test="tests/decisions/authorization/test_policy_of_apis.py::"
        "test_a_denied_call_changes_nothing[POST runs/{run}/cancel]",
    ),
    Guard(
        "answer-policy",
        "An answer that policy denies changes nothing",
        Patch(
            "runs/submission/answer.py",
            old="    approval = admit_call(\n"
            '        tool_call_request(principal, "answer_task_run", {"runId": run_id, "answer":'
            " answer})\n"
            "    )\n",
            new="    approval = None\n",
        ),
        failing_test="tests/decisions/authorization/test_policy_of_apis.py::test_answering_a_run_is_checked_by_policy",
    ),
)

_RETRY = (
    Guard(
        "retry-of-the-own-workspace",
        "A run of another workspace is not retried",
        Patch(
            "runs/submission/services.py",
            old="old = Run.objects.filter(id=run_id, workspace_id=principal.workspace_id).first()",
            new="old = Run.objects.filter(id=run_id).first()",
        ),
        failing_test="tests/runs/submission/test_retry.py::test_a_run_of_another_workspace_cannot_be_retried",
    ),
    Guard(
        "retry-status",
        "Only a run that failed or was canceled is retried",
        Patch("runs/submission/retry.py", old="if old.status not in RETRIABLE:", new="if False:"),
        failing_test="tests/runs/submission/test_retry.py::test_only_a_failed_or_canceled_run_can_be_retried[succeeded]",
    ),
    Guard(
        "retry-of-a-task",
        "A run of a task is not retried outside of the task's message queue",
        Patch("runs/submission/retry.py", old="if old.task_id is not None:", new="if False:"),
        failing_test="tests/runs/conversations/test_tasks.py::test_a_run_of_a_task_cannot_be_retried_outside_the_task",
    ),
    Guard(
        "retry-without-secrets",
        "A run whose secret inputs were deleted is not retried without them",
        Patch("runs/submission/retry.py", old="if old.holds_secrets:", new="if False:"),
        failing_test="tests/runs/submission/test_retry.py::test_a_run_that_held_credentials_cannot_be_retried",
    ),
    Guard(
        "retry-keeps-the-trust",
        "A retry by a local caller gives the run of a remote caller no local trust",
        Patch(
            "runs/submission/services.py",
            old='principal = principal.with_trust("remote") if old.trust == "remote" else'
            " principal",
            new="pass",
        ),
        failing_test="tests/runs/submission/test_retry.py::"
        "test_a_retry_by_an_operator_keeps_the_trust_of_the_remote_caller",
    ),
    Guard(
        "retry-lock",
        "Concurrent retries of one run return the same new run",
        Patch(
            "runs/submission/services.py",
            old="            list(Run.objects.select_for_update().filter(id=old.id))\n",
            new="",
        ),
        failing_test="tests/runs/submission/test_retry.py::test_a_second_retry_request_returns_the_same_run",
    ),
    Guard(
        "retry-policy",
        "A retry needs the confirmation that a submit needs",
        Patch(
            "runs/submission/services.py",
            old='        approval = admit_call(submission_request(submission, key=f"retry of'
            ' {old.id}"))\n',
            new="        approval = None\n",
        ),
        failing_test="tests/decisions/authorization/test_confirmed_calls.py::test_a_retry_needs_a_confirmation_as_a_submit_does",
    ),
    Guard(
        "retry-takes-over-successes-alone",
        "A retry takes over no step that did not succeed",
        Patch(
            "runs/submission/retry.py",
            old="RunStep.objects.filter(run_id=old.id, status=StepStatus.SUCCEEDED)",
            new='RunStep.objects.filter(run_id=old.id).exclude(status="pending")',
        ),
        failing_test="tests/runs/submission/test_retry.py::test_succeeded_steps_are_taken_over_and_not_repeated",
    ),
)

_DIRECT_CALLS = (
    Guard(
        "direct-call-policy",
        "A direct call that policy denies is not made",
        Patch(
            "runs/admission/direct_calls.py",
            old="    approval = admit_call(request)\n",
            new="    approval = None\n",
        ),
        failing_test="tests/runs/direct_calls/test_tool_calls.py::test_a_denied_tool_is_not_called[rest]",
    ),
    Guard(
        "direct-call-tests-policy",
        "A rule created after a direct call was authorized applies to it: the statement that starts"
        " the call tests the stamp of the rules",
        Patch(
            "runs/admission/direct_calls.py",
            old="preconditions=[policy.precondition, *preconditions]",
            new="preconditions=preconditions",
        ),
        failing_test="tests/runs/admission/test_admission_of_direct_calls.py::"
        "test_a_rule_created_after_the_authorization_denies_the_call[rest]",
    ),
    Guard(
        "direct-call-tests-target",
        "A target disabled after a direct call was authorized is not used: the statement that"
        " starts the call tests the target",
        Patch(
            "runs/direct_calls/calls.py",
            old="[] if admitted.target_row is None else [is_unchanged(admitted.target_row)]",
            new="[]",
        ),
        failing_test="tests/runs/admission/test_admission_of_direct_calls.py::"
        "test_a_folder_disabled_after_the_authorization_is_not_used[rest]",
    ),
    Guard(
        "call-start-preconditions-on-sqlite",
        "A call starts only if its preconditions hold",
        Patch(
            "runs/lifecycle/in_flight_calls.py",
            old=" or not all_hold(preconditions):",
            new=":",
        ),
        failing_test="tests/runs/admission/test_admission_of_direct_calls.py::"
        "test_a_rule_created_after_the_authorization_denies_the_call[rest]",
        database="sqlite",
    ),
    Guard(
        "first-call-tests-its-preconditions-on-sqlite",
        "A call that starts with its step starts only if its preconditions hold",
        Patch(
            "runs/lifecycle/writers.py",
            old="start.is_written = all_hold(start.preconditions)",
            new="start.is_written = True",
        ),
        failing_test="tests/runs/admission/test_cached_admission_of_local_calls.py::"
        "test_a_rule_created_during_the_turn_of_the_model_applies_to_its_next_call",
        database="sqlite",
    ),
    Guard(
        "direct-call-scope",
        "A direct call needs the scope of its tool",
        Patch(
            "runs/direct_calls/calls.py",
            old="    principal.require(scope_of(tool))\n",
            new="",
        ),
        failing_test="tests/runs/direct_calls/test_audited_refusals.py::test_a_missing_scope_is_audited[rest]",
    ),
    Guard(
        "direct-call-of-agent-tools",
        "A tool that is for the agent alone is not called directly",
        Patch("runs/direct_calls/calls.py", old="    if tool.agent_only:", new="    if False:"),
        failing_test="tests/runners/browser/actions/test_hidden_from_apis.py::"
        "test_a_direct_call_of_a_browser_action_returns_tool_not_found[browser_click]",
    ),
    Guard(
        "call-key-compares-arguments",
        "A key that was used for another call makes no second call",
        Patch(
            "runs/direct_calls/idempotency.py",
            old="    if row.digest not in use.digests:",
            new="    if False:",
        ),
        failing_test="tests/runs/direct_calls/test_idempotency.py::test_a_different_call_with_the_same_key_is_refused",
    ),
    Guard(
        "call-of-unknown-effect",
        "A call whose effect is unknown is not repeated with the same key",
        Patch(
            "runs/direct_calls/idempotency.py",
            old='    if not result.ok and effect != "unknown":',
            new="    if not result.ok:",
        ),
        failing_test="tests/runs/direct_calls/test_idempotency.py::test_a_call_with_an_unknown_effect_is_not_repeated",
    ),
    Guard(
        "call-in-flight",
        "A call in flight is not reported as interrupted to a request with the same key",
        Patch(
            "runs/direct_calls/idempotency.py",
            old="    if row.answer is None and OpenCall.objects.filter(id=row.call_id).exists():",
            new="    if False:",
        ),
        failing_test="tests/runs/direct_calls/test_idempotency.py::test_a_call_in_flight_is_reported_as_a_conflict",
    ),
    Guard(
        "one-call-a-key",
        "Of concurrent calls with one key the database admits one",
        Sql("ALTER TABLE runs_keyedcall DROP CONSTRAINT key_of_one_call"),
        failing_test="tests/runs/direct_calls/test_idempotency.py::test_a_concurrent_call_with_the_same_key_is_not_made",
    ),
    Guard(
        "call-key-of-a-run",
        "A key that was used for another call that a worker performs makes no second call",
        Patch(
            "runs/direct_calls/as_run.py",
            old="        if submitted.inputs_match is False:",
            new="        if False:",
        ),
        failing_test="tests/runs/direct_calls/test_calls_on_worker.py::"
        "test_a_key_used_for_a_different_call_leaves_one_refusal_in_the_audit_log",
    ),
)

_TASKS = (
    Guard(
        "message-scope",
        "A caller that may only read a task sends it no message",
        Patch(
            "runs/conversations/services.py",
            old='    principal.require("tasks:write")\n'
            "    task = visible_task(principal, task_id)\n"
            '    if task.trust == "remote":',
            new='    task = visible_task(principal, task_id)\n    if task.trust == "remote":',
        ),
        failing_test="tests/contract/test_task_socket.py::"
        "test_reading_and_writing_a_task_require_their_scopes",
    ),
    Guard(
        "takeover-policy",
        "A takeover that policy denies changes nothing",
        Patch(
            "runs/conversations/services.py",
            old='    approval = _admit(principal, "take_over_task", task_id, at_browser=at_browser)\n',
            new="    approval = None\n",
        ),
        failing_test="tests/decisions/authorization/test_policy_of_apis.py::"
        "test_a_denied_call_changes_nothing[POST tasks/{task}/takeover]",
    ),
    Guard(
        "listed-tasks-of-the-own-workspace",
        "Tasks of another workspace are not listed",
        Patch(
            "runs/conversations/selectors.py",
            old="    rows = Task.objects.filter(workspace_id=principal.workspace_id)\n",
            new="    rows = Task.objects.all()\n",
        ),
        failing_test="tests/runs/conversations/test_tasks.py::test_a_task_of_another_workspace_is_not_found",
    ),
    Guard(
        "one-run-at-a-time",
        "The run of a message waits for the task's current run",
        Patch(
            "runs/conversations/messages.py",
            old="run.ready = not self.runs_ahead and task.status != TaskStatus.TAKEOVER",
            new="run.ready = task.status != TaskStatus.TAKEOVER",
        ),
        failing_test="tests/runs/conversations/test_tasks.py::test_a_second_message_waits_for_the_end_of_the_first_run",
    ),
    Guard(
        "next-run-after-the-current-one",
        "The end of a run starts one of the waiting runs of its task",
        Patch(
            "runs/conversations/message_queue.py",
            old="    if any(is_current(run) for run in runs):\n        return True\n",
            new="",
        ),
        failing_test="tests/runs/conversations/test_waiting_tasks.py::test_an_interrupt_starts_no_run_that_it_then_cancels",
    ),
    Guard(
        "refused-while-busy",
        "A message that must not wait is refused while the task has a current run",
        Patch(
            "runs/conversations/messages.py",
            old='if self.runs_ahead and self.on_busy == "refuse":',
            new="if False:",
        ),
        failing_test="tests/runs/conversations/test_tasks.py::test_a_message_can_refuse_to_wait",
    ),
    Guard(
        "message-key-compares-content",
        "A repeated key with another message is a conflict",
        Patch(
            "runs/conversations/messages.py",
            old="if found is not None and found.digest != self.digest:",
            new="if False:",
        ),
        failing_test="tests/runs/conversations/test_tasks.py::"
        "test_a_repeated_key_returns_the_same_message_and_conflicts_with_another_text",
    ),
    Guard(
        "message-key-under-the-lock",
        "Concurrent messages with one key are one message",
        Patch(
            "runs/conversations/messages.py",
            old="        if duplicate is not None:\n"
            "            raise DuplicateMessage(duplicate)\n",
            new="",
        ),
        failing_test="tests/runs/conversations/test_concurrent_messages.py::"
        "test_concurrent_messages_with_one_key_are_one_message",
    ),
    Guard(
        "task-key-compares-the-message",
        "A repeated key of a task with another first message is a conflict",
        Patch(
            "runs/conversations/services.py",
            old="        if sent.find_duplicate() is None:",
            new="        if False:",
        ),
        failing_test="tests/runs/conversations/test_tasks.py::test_a_repeated_key_with_another_first_message_is_a_conflict",
    ),
    Guard(
        "one-task-a-key",
        "Concurrent requests with one key create one task",
        Sql("ALTER TABLE runs_task DROP CONSTRAINT task_key_per_principal"),
        failing_test="tests/runs/conversations/test_concurrent_messages.py::test_concurrent_requests_with_one_key_create_one_task",
    ),
    Guard(
        "remote-message-makes-the-task-remote",
        "Once a remote caller wrote a message, the runs of the task have remote trust",
        Patch(
            "runs/conversations/messages.py",
            old='trust = "remote" if principal.trust == "remote" else task.trust',
            new="trust = task.trust",
        ),
        failing_test="tests/runs/conversations/test_tasks.py::test_a_message_of_a_remote_caller_makes_later_runs_remote",
    ),
    Guard(
        "run-of-a-remote-task",
        "A local caller's message to a task of a remote caller starts a run with remote trust",
        Patch(
            "runs/conversations/services.py",
            old='    if task.trust == "remote":\n'
            '        principal = principal.with_trust("remote")\n',
            new="",
        ),
        failing_test="tests/runs/conversations/test_tasks.py::test_a_message_of_a_remote_caller_makes_later_runs_remote",
    ),
    Guard(
        "answer-has-no-schema",
        "A message that answers a run does not change the run's output schema",
        Patch(
            "runs/conversations/messages.py",
            old="        if self.output_schema is not None:\n            raise InvalidInput(",
            new="        if False:\n            raise InvalidInput(",
        ),
        failing_test="tests/runs/conversations/test_waiting_tasks.py::test_an_answer_with_an_output_schema_is_refused",
    ),
    Guard(
        "task-status-transitions",
        "A task takes no status that its status does not allow",
        Patch(
            "runs/conversations/state.py",
            old="    if to not in ALLOWED[before]:",
            new="    if False:",
        ),
        failing_test="tests/runs/conversations/test_statuses.py::test_a_task_changes_status_only_along_legal_pairs",
    ),
    Guard(
        "task-status-compare-and-set",
        "A task's status is not set from a row that another transaction changed meanwhile",
        Patch(
            "runs/conversations/state.py",
            old='columns, guard={"status": before})',
            new="columns)",
        ),
        failing_test="tests/runs/conversations/test_statuses.py::test_a_task_whose_status_changed_meanwhile_does_not_change",
    ),
    Guard(
        "no-start-during-a-takeover",
        "A run that has not started does not start during a takeover",
        Patch(
            "runs/conversations/services.py",
            old="                    hold_back(run)\n",
            new="                    pass\n",
        ),
        failing_test="tests/runs/conversations/test_takeover.py::"
        "test_a_run_that_has_not_started_does_not_start_during_a_takeover",
    ),
    Guard(
        "message-waits-for-the-takeover",
        "The run of a message sent during a takeover waits until the takeover ends",
        Patch(
            "runs/conversations/messages.py",
            old="run.ready = not self.runs_ahead and task.status != TaskStatus.TAKEOVER",
            new="run.ready = not self.runs_ahead",
        ),
        failing_test="tests/runs/conversations/test_takeover.py::"
        "test_a_message_during_a_takeover_waits_until_the_page_is_returned",
    ),
    Guard(
        "next-run-waits-for-the-takeover",
        "The scheduler starts no waiting run during a takeover",
        Patch(
            "runs/conversations/message_queue.py",
            old="    if task.status == TaskStatus.TAKEOVER:\n        return False\n",
            new="",
        ),
        failing_test="tests/runs/conversations/test_takeover.py::"
        "test_a_message_during_a_takeover_waits_until_the_page_is_returned",
    ),
    Guard(
        "takeover-outlives-its-run",
        "The end of a run does not end the takeover of its page",
        Patch(
            "runs/conversations/run_changes.py",
            old="    if task.status == TaskStatus.TAKEOVER:\n"
            "        return TaskStatus.TAKEOVER  # only the person or the time limit ends a"
            " takeover\n",
            new="",
        ),
        failing_test="tests/runs/conversations/test_takeover.py::"
        "test_a_run_that_ends_during_a_takeover_leaves_the_page_with_the_person",
    ),
    Guard(
        "takeover-limit",
        "A takeover ends after its time limit and not before",
        (
            Patch(
                "runs/conversations/maintenance.py",
                old="Task.objects.filter(taken_over_at__lte=limit)",
                new="Task.objects.filter(taken_over_at__isnull=False)",
            ),
            Patch(
                "runs/conversations/maintenance.py",
                old="task is None or task.taken_over_at is None or task.taken_over_at > limit:",
                new="task is None or task.taken_over_at is None:",
            ),
        ),
        failing_test="tests/runs/conversations/test_takeover.py::"
        "test_a_page_that_is_not_returned_fails_its_run_and_starts_the_next",
    ),
    Guard(
        "takeover-ends-once",
        "A takeover that has ended is not ended again",
        Patch(
            "runs/conversations/services.py",
            old="        if locked is None or locked.status != TaskStatus.TAKEOVER:\n",
            new="        if locked is None:\n",
        ),
        failing_test="tests/runs/conversations/test_takeover.py::"
        "test_a_takeover_that_another_request_ends_meanwhile_is_not_ended_again",
    ),
    Guard(
        "tasks-with-runs-are-kept",
        "A task is not deleted before its runs",
        Patch(
            "runs/conversations/maintenance.py",
            old='        ~Exists(Run.objects.filter(task_id=OuterRef("id"))),\n',
            new="",
        ),
        failing_test="tests/runs/conversations/test_takeover.py::test_a_task_is_deleted_after_its_runs",
    ),
)

_SESSIONS = (
    Guard(
        "listed-sessions-of-the-caller",
        "A caller lists its own sessions alone",
        Patch(
            "runs/sessions/services.py",
            old="workspace_id=principal.workspace_id, principal_id=principal.id,"
            " closed_at__isnull=True",
            new="closed_at__isnull=True",
        ),
        failing_test="tests/runs/sessions/test_sessions.py::test_only_an_open_session_of_the_caller_is_found"
        "[another's]",
    ),
    Guard(
        "session-in-use-is-not-closed",
        "A session that a run uses is not closed",
        Patch(
            "runs/sessions/services.py",
            old="        if user is not None:\n            raise Conflict(",
            new="        if False:\n            raise Conflict(",
        ),
        failing_test="tests/runs/sessions/test_sessions.py::test_a_session_in_use_is_not_closed",
    ),
    Guard(
        "session-in-use-is-not-released",
        "A session that a run uses is not released to another worker",
        Patch(
            "runs/lifecycle/session_lease.py",
            old="row.worker_id != worker_id or run_using(session_id) is not None:",
            new="row.worker_id != worker_id:",
        ),
        failing_test="tests/runs/sessions/test_sessions.py::test_a_session_in_use_is_not_released",
    ),
    Guard(
        "session-released-by-its-worker",
        "A worker releases no session that another worker has",
        Patch(
            "runs/lifecycle/session_lease.py",
            old="if row is None or row.worker_id != worker_id or run_using",
            new="if row is None or run_using",
        ),
        failing_test="tests/runs/sessions/test_sessions.py::test_a_session_in_use_is_not_released",
    ),
    Guard(
        "closed-session-keeps-no-state",
        "Closing a session deletes its cookies and storage",
        Patch("runs/sessions/services.py", old="        sealed_state=None,\n", new=""),
        failing_test="tests/runs/sessions/test_sessions.py::test_closing_deletes_the_state_and_fails_the_waiting_runs",
    ),
    Guard(
        "session-of-an-active-run-stays",
        "A session that a queued or running run names does not expire",
        Patch(
            "runs/sessions/services.py",
            old="row.used_at <= _idle_since() and not active.exists():",
            new="row.used_at <= _idle_since():",
        ),
        failing_test="tests/runs/sessions/test_sessions.py::test_only_sessions_unused_for_long_expire",
    ),
    Guard(
        "session-policy",
        "A session that policy denies is not created",
        Patch(
            "runs/sessions/services.py",
            old='    approval = admit_call(tool_call_request(principal, "create_session", {"name":'
            " row.name}))\n",
            new="    approval = None\n",
        ),
        failing_test="tests/decisions/authorization/test_policy_of_apis.py::test_a_denied_call_changes_nothing[POST sessions]",
    ),
)

_VISIBILITY = (
    Guard(
        "hidden-run-stays-hidden",
        "A hidden run is not found even if the clock is set back (the query and the TTL both test"
        " it)",
        (
            Patch(
                "runs/queries/visibility.py",
                old=" AND hidden_at IS NULL",
                new="",
            ),
            Patch(
                "runs/queries/visibility.py",
                old="    return run.hidden_at is not None or (\n",
                new="    return (\n",
            ),
        ),
        failing_test="tests/runs/scheduler/test_retention.py::"
        "test_a_hidden_run_stays_hidden_when_the_clock_is_set_back",
    ),
    Guard(
        "counted-runs-of-the-own-workspace",
        "The total of a list counts no runs of another workspace",
        Patch(
            "runs/queries/totals.py",
            old='wheres = ["workspace_id = %s"]',
            new='wheres = ["(workspace_id = %s OR TRUE)"]',
        ),
        failing_test="tests/runs/queries/test_totals.py::"
        "test_a_total_counts_only_matching_runs_of_its_workspace[{}]",
    ),
    Guard(
        "subject-secrets",
        "A secret input that another input repeats is masked in the run's subject",
        Patch(
            "runs/submission/validation.py",
            old="Masker(secrets.values()).text(template.subject(masked))",
            new="template.subject(masked)",
        ),
        failing_test="tests/runs/task_templates/test_subjects.py::"
        "test_a_secret_input_that_another_input_repeats_is_masked",
    ),
    Guard(
        "label-secrets",
        "A secret input that a label repeats is masked in the label",
        Patch(
            "runs/submission/validation.py",
            old="Masker(self.secrets.values()).value(given)",
            new="dict(given)",
        ),
        failing_test="tests/runs/task_templates/test_subjects.py::"
        "test_a_secret_input_that_another_input_repeats_is_masked",
    ),
    Guard(
        "subject-of-a-goal-without-queries",
        "URLs in a goal are shown in the run's subject without their query strings",
        Patch(
            "runs/task_templates/subjects.py",
            old="_URL.sub(lambda found: place_of(found[0]), begin)",
            new="begin",
        ),
        failing_test="tests/runs/queries/test_run_search.py::"
        "test_no_run_is_found_by_what_it_does_not_show[geheim]",
    ),
    Guard(
        "saved-view-owner",
        "An operator deletes no view of another one",
        Patch(
            "runs/admin/run_list/saved_views.py",
            old="_own_views(request).filter(id=view_id).delete()",
            new="SavedView.objects.filter(id=view_id).delete()",
        ),
        failing_test="tests/runs/admin/test_run_list_filters.py::"
        "test_a_view_is_saved_chosen_and_deleted_by_its_owner_alone",
    ),
    Guard(
        "bulk-action-permission",
        "An operator who may only view runs labels none of them",
        Patch(
            "runs/admin/run_list/bulk.py",
            old='@admin.action(description=_("Label"), permissions=["operate"])',
            new='@admin.action(description=_("Label"), permissions=["view"])',
        ),
        failing_test="tests/runs/admin/test_bulk_actions.py::"
        "test_a_viewer_has_no_action_that_changes_runs",
    ),
    Guard(
        "export-permission",
        "The export of runs needs the permission to view runs",
        Patch(
            "runs/admin/run_list/pages.py",
            old="        self._check_may_view(request)\n        change_list",
            new="        change_list",
        ),
        failing_test="tests/runs/admin/test_run_list_filters.py::"
        "test_views_need_the_permission_to_view_runs",
    ),
    Guard(
        "export-formulas",
        "A text of an export that a spreadsheet would run as a formula is quoted",
        Patch(
            "runs/admin/run_list/export.py",
            old="""        return f"'{value}"
""",
            new="        return value\n",
        ),
        failing_test="tests/runs/admin/test_bulk_actions.py::"
        "test_the_filtered_list_is_exported_as_csv_without_formulas",
    ),
    Guard(
        "list-scope",
        "A caller without the scope runs:read lists no runs",
        Patch(
            "runs/queries/run_lists.py",
            old='    principal.require("runs:read")\n    if cursor',
            new="    if cursor",
        ),
        failing_test="tests/contract/test_mcp_server_failures.py::test_a_missing_scope_is_refused[list_task_runs]",
    ),
    Guard(
        "read-scope",
        "A caller without the scope runs:read reads no run",
        Patch(
            "runs/queries/runs.py",
            old='    principal.require("runs:read")\n    run = visible_run(principal, run_id)\n'
            "    data = run_object(",
            new="    run = visible_run(principal, run_id)\n    data = run_object(",
        ),
        failing_test="tests/contract/test_mcp_server_failures.py::test_a_missing_scope_is_refused[get_task_run]",
    ),
    Guard(
        "events-scope",
        "A caller without the scope runs:read reads no events",
        Patch(
            "runs/queries/runs.py",
            old='    principal.require("runs:read")\n    run = visible_run(principal, run_id)\n'
            "    # Events",
            new="    run = visible_run(principal, run_id)\n    # Events",
        ),
        failing_test="tests/contract/test_mcp_server_failures.py::"
        "test_a_missing_scope_is_refused[subscribe_task_run_events]",
    ),
    Guard(
        "evidence-scopes",
        "Evidence is exported for callers with every scope that it needs",
        Patch(
            "runs/queries/evidence.py",
            old="        principal.require(scope)\n",
            new="        pass\n",
        ),
        failing_test="tests/decisions/audit/test_bundles.py::test_evidence_needs_its_scopes",
    ),
    Guard(
        "evidence-without-call-keys",
        "Evidence contains no key that identifies a repeated call",
        Patch(
            "runs/queries/evidence.py",
            old='frozenset({"answer_mac", "deed_key", "token_digest", "sealed_arguments"})',
            new='frozenset({"token_digest"})',
        ),
        failing_test="tests/decisions/audit/test_bundles.py::"
        "test_the_decisions_of_a_run_are_in_its_evidence_and_keep_their_secrets",
    ),
    Guard(
        "evidence-without-token-digests",
        "Evidence contains no digest of a confirmation token",
        Patch(
            "runs/queries/evidence.py",
            old='frozenset({"answer_mac", "deed_key", "token_digest", "sealed_arguments"})',
            new='frozenset({"deed_key"})',
        ),
        failing_test="tests/decisions/audit/test_bundles.py::test_no_token_digest_is_in_the_evidence",
    ),
)

_WEBHOOKS = (
    Guard(
        "webhook-address",
        "A remote caller registers no private address",
        Patch(
            "runs/webhooks/services.py",
            old="        return check_address(url, principal.trust)\n",
            new='        return check_address(url, "local")\n',
        ),
        failing_test="tests/runs/api/test_webhooks.py::"
        "test_a_remote_token_cannot_register_a_private_address[127.0.0.1]",
    ),
    Guard(
        "webhook-resolved-address",
        "A public name that resolves to a private address receives nothing",
        Patch(
            "runs/webhooks/transport.py",
            old="        permits=partial(may_reach, trust=trust),\n",
            new="        permits=lambda *_: True,\n",
        ),
        failing_test="tests/runs/webhooks/test_transport.py::"
        "test_a_public_name_with_a_private_address_is_refused[127.0.0.1]",
    ),
    Guard(
        "webhook-checked-address-is-connected",
        "A message is sent to the address that was checked, not to one resolved again",
        Patch(
            "runners/network/http_client.py",
            old="self._inner.connect_tcp(str(address), port, timeout)",
            new="self._inner.connect_tcp(host, port, timeout)",
        ),
        failing_test="tests/runs/webhooks/test_transport.py::"
        "test_the_checked_address_is_connected_to_whatever_the_name_resolves_to_later",
    ),
    Guard(
        "webhook-address-at-each-attempt",
        "A remote caller's webhook reaches no private address, whatever its row names (the address"
        " and what it resolves to are both tested)",
        (
            Patch(
                "runs/webhooks/transport.py",
                old="checked = check_address(url, trust)",
                new="checked = url",
            ),
            Patch(
                "runs/webhooks/transport.py",
                old="        permits=partial(may_reach, trust=trust),\n",
                new="        permits=lambda *_: True,\n",
            ),
        ),
        failing_test="tests/runs/webhooks/test_transport.py::"
        "test_a_remote_callers_webhook_reaches_no_private_address[http://127.0.0.1/]",
    ),
    Guard(
        "webhook-time-limit",
        "An attempt ends after its time limit",
        Patch(
            "runs/webhooks/transport.py",
            old="        async with asyncio.timeout(TIMEOUT_S):\n",
            new="        async with asyncio.timeout(30):\n",
        ),
        failing_test="tests/runs/webhooks/test_transport.py::test_a_slow_response_times_out[trickling]",
    ),
    Guard(
        "webhook-signature",
        "The signature of a message covers its body",
        Patch(
            "runs/webhooks/signing.py",
            old='signed = b"%b.%d.%b" % (message_id.encode(), timestamp, body)',
            new='signed = b"%b.%d." % (message_id.encode(), timestamp)',
        ),
        failing_test="tests/runs/webhooks/test_webhooks.py::test_the_end_of_a_run_is_sent_once_and_signed",
    ),
    Guard(
        "webhook-secret-sealed",
        "The secret of a webhook is stored encrypted",
        (
            Patch(
                "runs/webhooks/services.py",
                old='hook.secret = seal_column(hook, "secret", secret.encode())',
                new="hook.secret = secret.encode()",
            ),
            Patch(
                "runs/webhooks/deliveries.py",
                old='secret = unseal_column(row.webhook, "secret").decode()',
                new="secret = bytes(row.webhook.secret).decode()",
            ),
        ),
        failing_test="tests/runs/webhooks/test_webhooks.py::test_the_secret_is_in_no_row_and_only_in_the_first_answer",
    ),
    Guard(
        "webhook-without-result",
        "A message does not contain the result of the run",
        Patch("runs/webhooks/deliveries.py", old='    del data["result"]\n', new=""),
        failing_test="tests/runs/webhooks/test_webhooks.py::test_the_end_of_a_run_is_sent_once_and_signed",
    ),
    Guard(
        "webhook-of-the-own-workspace",
        "A webhook of another workspace is not found",
        Patch(
            "runs/webhooks/services.py",
            old="filter(id=webhook_id, workspace_id=principal.workspace_id).first()",
            new="filter(id=webhook_id).first()",
        ),
        failing_test="tests/runs/api/test_webhooks.py::test_a_webhook_of_another_workspace_is_not_found",
    ),
    Guard(
        "webhook-receives-its-workspace",
        "A webhook receives no end of a run of another workspace",
        Patch(
            "runs/lifecycle/writes.py",
            old="WHERE w.workspace_id = %s",
            new="WHERE '' <> %s",
        ),
        failing_test="tests/runs/webhooks/test_webhooks.py::test_webhooks_of_other_workspaces_receive_nothing",
    ),
    Guard(
        "webhook-limit",
        "A workspace has a maximum number of webhooks",
        Patch("runs/webhooks/services.py", old=".count() >= MAX_WEBHOOKS:", new=".count() < 0:"),
        failing_test="tests/runs/webhooks/test_webhooks.py::test_a_workspace_has_a_limit_of_webhooks",
    ),
    Guard(
        "webhook-delivery-epoch",
        "A late result does not settle a delivery that was replayed meanwhile",
        Patch(
            "runs/webhooks/deliveries.py",
            old="id=lease.delivery_id, epoch=lease.epoch, status=DeliveryStatus.PENDING",
            new="id=lease.delivery_id, status=DeliveryStatus.PENDING",
        ),
        failing_test="tests/runs/webhooks/test_deliveries.py::"
        "test_a_replay_takes_over_a_delivery_whose_attempt_is_in_flight",
    ),
    Guard(
        "webhook-settled-once",
        "A late result does not settle a delivery that is settled",
        Patch(
            "runs/webhooks/deliveries.py",
            old="id=lease.delivery_id, epoch=lease.epoch, status=DeliveryStatus.PENDING",
            new="id=lease.delivery_id",
        ),
        failing_test="tests/runs/webhooks/test_deliveries.py::"
        "test_a_killed_deliverer_is_replaced_and_its_late_result_is_refused",
    ),
    Guard(
        "webhook-claimed-once",
        "Of many deliverers one sends a delivery",
        Patch(
            "runs/webhooks/deliveries.py",
            old="filter(id=row.id, epoch=row.epoch, status=DeliveryStatus.PENDING)",
            new="filter(id=row.id, status=DeliveryStatus.PENDING)",
        ),
        failing_test="tests/runs/webhooks/test_deliveries.py::test_one_deliverer_sends_a_delivery",
    ),
    Guard(
        "webhook-attempts",
        "A delivery is given up after the last attempt",
        Patch(
            "runs/webhooks/deliveries.py",
            old="elif gone or lease.attempt >= MAX_ATTEMPTS:",
            new="elif gone:",
        ),
        failing_test="tests/runs/webhooks/test_deliveries.py::"
        "test_a_delivery_is_given_up_after_the_last_attempt",
    ),
    Guard(
        "disabled-webhook",
        "A disabled webhook gets no further deliveries",
        Patch(
            "runs/lifecycle/writes.py",
            old='" AND w.disabled_at IS NULL AND (',
            new='" AND (',
        ),
        failing_test="tests/runs/webhooks/test_deliveries.py::"
        "test_an_address_that_answers_gone_receives_nothing_more",
    ),
    Guard(
        "replay-to-a-disabled-webhook",
        "A delivery to a disabled webhook is not replayed",
        Patch(
            "runs/webhooks/services.py",
            old="    if hook.disabled_at is not None:\n        raise Conflict(",
            new="    if False:\n        raise Conflict(",
        ),
        failing_test="tests/runs/webhooks/test_deliveries.py::"
        "test_a_replayed_delivery_starts_again_under_the_same_id",
    ),
    Guard(
        "unreadable-webhook-secret",
        "A webhook whose secret cannot be read does not block others",
        Patch(
            "runs/webhooks/deliveries.py",
            old="    except (ValueError, LookupError, ObjectDoesNotExist):\n",
            new="    except ObjectDoesNotExist:\n",
        ),
        failing_test="tests/runs/webhooks/test_deliveries.py::"
        "test_a_webhook_with_an_unreadable_secret_does_not_block_others",
    ),
    Guard(
        "confirmation-webhook-scope",
        "An agent creates no webhook that receives the links which decide confirmations",
        Patch(
            "runs/webhooks/services.py",
            old='    principal.require("confirm")\n    if principal.acts_for',
            new="    if principal.acts_for",
        ),
        failing_test="tests/runs/webhooks/test_confirmation_messages.py::"
        "test_an_agent_cannot_create_a_webhook_for_confirmations",
    ),
    Guard(
        "confirmation-webhook-is-kept",
        "An agent does not disable or delete a webhook that receives confirmations",
        Patch(
            "runs/webhooks/services.py",
            old='    if hook.tells_confirmations:\n        principal.require("confirm")\n',
            new="",
        ),
        failing_test="tests/runs/webhooks/test_confirmation_messages.py::"
        "test_an_agent_cannot_disable_or_delete_a_webhook_for_confirmations",
    ),
    Guard(
        "confirmation-webhook-of-the-own-workspace",
        "A webhook receives no confirmation of another workspace",
        Patch(
            "runs/webhooks/confirmation_messages.py",
            old="workspace_id=decision.workspace_id, tells_confirmations=True,",
            new="tells_confirmations=True,",
        ),
        failing_test="tests/runs/webhooks/test_confirmation_messages.py::"
        "test_a_webhook_of_another_workspace_receives_nothing",
    ),
    Guard(
        "confirmation-webhook-only-for-confirmations",
        "A webhook for runs receives no confirmation",
        Patch(
            "runs/webhooks/confirmation_messages.py",
            old="workspace_id=decision.workspace_id, tells_confirmations=True,",
            new="workspace_id=decision.workspace_id,",
        ),
        failing_test="tests/runs/webhooks/test_confirmation_messages.py::"
        "test_a_webhook_for_runs_receives_no_confirmation",
    ),
    Guard(
        "confirmation-link-not-to-its-caller",
        "A webhook gets no link to confirm a request of the token that created the webhook",
        Patch(
            "runs/webhooks/confirmation_messages.py",
            old="None if is_own else confirmation_link(confirmation)",
            new="confirmation_link(confirmation)",
        ),
        failing_test="tests/runs/webhooks/test_confirmation_messages.py::"
        "test_a_webhook_of_the_caller_gets_no_link",
    ),
    Guard(
        "inline-confirmation-has-no-webhook",
        "A confirmation whose token goes through the agent's host is sent to no webhook",
        Patch(
            "runs/webhooks/confirmation_messages.py",
            old="    if confirmation.delivery != Delivery.OUT_OF_BAND:\n        return\n",
            new="",
        ),
        failing_test="tests/runs/webhooks/test_confirmation_messages.py::"
        "test_a_confirmation_with_a_token_for_the_host_is_not_delivered",
    ),
)

_READERS = (
    Guard(
        "slow-reader",
        "A reader that is far behind fills no memory: it reads the database instead",
        Patch(
            "runs/streaming/subscriber.py",
            old="if batch.first != self._seq + 1 or self._queued + size > QUEUE_EVENTS:",
            new="if batch.first != self._seq + 1:",
        ),
        failing_test="tests/runs/streaming/test_hub.py::test_a_slow_stream_reads_pages_and_delays_no_other",
    ),
    Guard(
        "reader-misses-no-event",
        "A reader that subscribes while events are written misses none of them",
        Patch(
            "runs/streaming/event_log.py",
            old="        return seq >= self.seq\n",
            new="        return True\n",
        ),
        failing_test="tests/runs/streaming/test_hub.py::"
        "test_a_stream_gets_an_event_that_is_written_during_its_first_read",
    ),
    Guard(
        "invalid-notification",
        "An invalid message on the Redis channel does not stop the notifications",
        Patch(
            "runs/streaming/hub.py",
            old="        except (ValueError, TypeError, KeyError):\n            return\n",
            new="        except ZeroDivisionError:\n            return\n",
        ),
        failing_test="tests/runs/streaming/test_hub.py::"
        "test_an_invalid_message_on_the_channel_does_not_stop_notifications[no json]",
    ),
    Guard(
        "hub-supervision",
        "A loop of the event hub that fails is started again",
        Patch(
            "runs/streaming/hub.py",
            old='            except Exception:\n                log.exception("the loop',
            new="            except ZeroDivisionError:\n                raise\n"
            '            except Exception:\n                log.exception("the loop',
        ),
        failing_test="tests/runs/streaming/test_hub_faults.py::"
        "test_a_loop_that_fails_is_started_again_and_reported[read]",
    ),
    Guard(
        "lease-before-request",
        "A canceled run sends the model no request",
        Patch(
            "runs/agent/loop.py",
            old="    await ctx.check_lease()  # the run may",
            new="    # the run may",
        ),
        failing_test="tests/runs/agent/test_agent_task.py::"
        "test_a_run_canceled_while_a_turn_is_prepared_sends_no_request",
    ),
    Guard(
        "dead-webhook",
        "A webhook whose address fails for five days is disabled",
        Patch(
            "runs/webhooks/deliveries.py",
            old="    if is_dead and lease.attempt >= MAX_ATTEMPTS:",
            new="    if False:",
        ),
        failing_test="tests/runs/webhooks/test_deliveries.py::"
        "test_an_address_that_only_fails_for_five_days_is_disabled_until_a_person_enables_it",
    ),
    Guard(
        "held-pages",
        "A worker holds a maximum number of pages for runs that wait",
        Patch(
            "runs/sessions/held_pages.py",
            old="    return len(_held) < int(settings.MAX_WAITING_PAGES)\n",
            new="    return True\n",
        ),
        failing_test="tests/runs/sessions/test_held_pages.py::"
        "test_a_worker_at_its_limit_closes_the_page_of_a_waiting_run",
    ),
    Guard(
        "ticket-scopes",
        "A ticket has the scopes of its caller and no others",
        Patch(
            "decisions/identity/principals.py",
            old='scopes=frozenset(data["scopes"]),',
            new='scopes=frozenset({"tasks:read", "tasks:write"}),',
        ),
        failing_test="tests/contract/test_task_socket.py::test_a_ticket_has_the_scopes_of_its_caller",
    ),
    Guard(
        "input-dropped-after-the-takeover",
        "Input that waited while the page was given back is dropped",
        Patch(
            "runs/live/page.py",
            old="                if not await self._is_still_taken_over():\n"
            "                    continue\n",
            new="",
        ),
        failing_test="tests/runs/live/test_input_at_release.py::"
        "test_input_still_pending_when_the_page_is_released_is_dropped",
    ),
)

_NEW_RUN = "tests/runs/admin/test_new_run.py"
_ADMIN = (
    Guard(
        "new-run-permission",
        "An operator without the permission submits no run from the form",
        Patch(
            "runs/admin/new_run/views.py",
            old="if request.method not in methods or not may_operate:",
            new="if request.method not in methods:",
        ),
        failing_test=f"{_NEW_RUN}::test_the_form_needs_the_permission_to_change_runs",
    ),
    Guard(
        "new-run-secrets",
        "The form of a run shows no secret of an earlier run or of a refused form",
        Patch(
            "runs/admin/new_run/prefill.py",
            old="return not (is_secret or value == MASK or redact(value) != value)",
            new="return True",
        ),
        failing_test=f"{_NEW_RUN}::test_a_value_marked_secret_is_not_filled_in",
    ),
    Guard(
        "run-again-trust",
        "A remote caller's run that an operator submits again stays remote",
        Patch(
            "runs/admin/new_run/views.py",
            old="return operator_of(request, form.source).with_trust(as_trust(form.source.trust))",
            new="return operator_of(request, form.source)",
        ),
        failing_test=f"{_NEW_RUN}::test_a_run_again_keeps_workspace_trust_and_options",
    ),
    Guard(
        "webhook-questions-workspace",
        "A question of a run is sent to webhooks of its own workspace alone",
        Patch(
            "runs/lifecycle/writes.py",
            old='" AND w.workspace_id = %s"',
            new="\" AND '' <> %s\"",
        ),
        failing_test="tests/runs/webhooks/test_questions.py"
        "::test_a_webhook_of_another_workspace_gets_no_question",
    ),
    Guard(
        "change-stream-topics",
        "The admin's stream of changes reports rows to viewers who may see them alone",
        Patch(
            "runs/streaming/changes.py",
            old="        if topic not in self.topics:\n            return\n",
            new="",
        ),
        failing_test="tests/runs/streaming/test_changes.py"
        "::test_a_topic_that_the_viewer_may_not_see_is_not_sent",
    ),
    Guard(
        "change-stream-questions",
        "A viewer of decisions alone receives no question of a run",
        Patch(
            "runs/queries/waiting.py",
            old="kinds = {kind for kind, may in ((DECISION, decisions), (QUESTION, questions)) if may}",
            new="kinds = {DECISION, QUESTION}",
        ),
        failing_test="tests/runs/streaming/test_changes.py"
        "::test_a_viewer_of_decisions_alone_receives_no_question",
    ),
    Guard(
        "change-stream-session",
        "The admin's stream of changes ends with the session",
        Patch(
            "runs/admin/change_stream.py",
            old="if await in_thread(_viewer_of_session, session_key) != viewer:",
            new="if await in_thread(_viewer_of_session, session_key) == ():",
        ),
        failing_test="tests/runs/streaming/test_changes.py::test_the_stream_ends_after_a_sign_out",
    ),
    Guard(
        "admin-run-actions",
        "An operator without the permission cancels and retries no run",
        Patch(
            "runs/admin/runs/admin.py",
            old="        if not self.has_operate_permission(request):\n"
            "            raise PermissionDenied\n"
            "        run = self._run(request, run_id)\n",
            new="        run = self._run(request, run_id)\n",
        ),
        failing_test="tests/runs/admin/test_cancel_and_retry.py::test_an_action_needs_its_permission",
    ),
    Guard(
        "admin-list-actions",
        "An operator without the permission has no list action",
        Patch(
            "runs/admin/run_list/bulk.py",
            old='@admin.action(description=_("Cancel"), permissions=["operate"])',
            new='@admin.action(description=_("Cancel"))',
        ),
        failing_test="tests/runs/admin/test_cancel_and_retry.py::test_an_action_needs_its_permission",
    ),
    Guard(
        "admin-post-only",
        "A link cancels no run in the admin site",
        Patch(
            "runs/admin/runs/admin.py",
            old='        if request.method != "POST":\n'
            '            return HttpResponseNotAllowed(["POST"])\n'
            "        if not self.has_operate_permission(request):\n",
            new="        if not self.has_operate_permission(request):\n",
        ),
        failing_test="tests/runs/admin/test_cancel_and_retry.py::test_an_action_is_a_post_from_the_same_site",
    ),
    Guard(
        "admin-csrf",
        "A page of another site cancels no run in the admin site",
        (
            Patch(
                "runs/admin/runs/admin.py",
                old="from django.views.decorators.cache import never_cache\n",
                new="from django.views.decorators.cache import never_cache\n"
                "from django.views.decorators.csrf import csrf_exempt\n",
            ),
            Patch(
                "runs/admin/runs/admin.py",
                old="wrap(self.cancel_view)",
                new="wrap(csrf_exempt(self.cancel_view))",
            ),
        ),
        failing_test="tests/runs/admin/test_cancel_and_retry.py::test_an_action_is_a_post_from_the_same_site",
    ),
    Guard(
        "admin-login",
        "A run's page needs a login",
        Patch(
            "runs/admin/runs/admin.py",
            old='path("<str:run_id>/steps/<int:index>/", wrap(self.step_view),',
            new='path("<str:run_id>/steps/<int:index>/", self.step_view,',
        ),
        failing_test="tests/runs/admin/test_permissions.py::test_anonymous_users_are_redirected_to_the_login",
    ),
    Guard(
        "admin-view-permission",
        "Staff without the permission see no run, task, artifact or snapshot",
        Patch(
            "decisions/admin/read_only.py",
            old="        if not self.has_view_permission(request):\n"
            "            raise PermissionDenied\n",
            new="        return\n",
        ),
        failing_test="tests/runs/admin/test_permissions.py::test_staff_without_permissions_see_nothing",
    ),
    Guard(
        "admin-list-action-limit",
        "A list action changes at most a hundred rows",
        Patch(
            "decisions/admin/acting.py",
            old="    if len(rows) > ACTION_ROWS:\n",
            new="    if False:\n",
        ),
        failing_test="tests/runs/admin/test_webhooks.py::"
        "test_an_action_on_too_many_rows_is_refused",
    ),
    Guard(
        "bulk-action-limit",
        "An action on all runs that match changes at most BULK_MAX of them",
        Patch(
            "runs/admin/run_list/bulk.py",
            old="for run in runs[:BULK_MAX]]",
            new="for run in queryset]",
        ),
        failing_test="tests/runs/admin/test_bulk_actions.py::"
        "test_all_runs_that_match_are_handled_up_to_the_limit_and_the_page_says_so",
    ),
    Guard(
        "admin-retry-trust",
        "A retry in the admin site gives the run of a remote caller no local trust (the page and"
        " the service both see to it)",
        (
            Patch(
                "runs/admin/run_list/bulk.py",
                old="return operator_of(request, run).with_trust(as_trust(run.trust))",
                new="return operator_of(request, run)",
            ),
            Patch(
                "runs/submission/services.py",
                old='principal = principal.with_trust("remote") if old.trust == "remote" else'
                " principal",
                new="pass",
            ),
        ),
        failing_test="tests/runs/admin/test_cancel_and_retry.py::"
        "test_a_run_of_a_remote_caller_gains_no_trust_by_a_retry",
    ),
    Guard(
        "admin-answer-permission",
        "An operator without the permission sees no form to answer a question",
        Patch(
            "runs/admin/runs/questions.py",
            old='"may_operate": request.user.has_perm("runs.change_run"),',
            new='"may_operate": True,',
        ),
        failing_test="tests/runs/admin/test_questions.py::test_answering_needs_its_permission",
    ),
    Guard(
        "admin-questions-permission",
        "An operator who may not see runs sees no questions of theirs",
        Patch(
            "runs/admin/runs/questions.py",
            old='    if not request.user.has_perm("runs.view_run"):\n'
            '        return SafeString("")\n',
            new="",
        ),
        failing_test="tests/runs/admin/test_questions.py::test_answering_needs_its_permission",
    ),
    Guard(
        "admin-answer-storable",
        "An answer with a character that the database cannot store is refused",
        Patch(
            "runs/admin/runs/questions.py",
            old='    if not answer or len(answer) > MESSAGE_MAX or "\\0" in answer:',
            new="    if not answer or len(answer) > MESSAGE_MAX:",
        ),
        failing_test="tests/runs/admin/test_questions.py::"
        "test_an_invalid_answer_is_rejected_with_a_message[a\\x00b]",
    ),
    Guard(
        "admin-answer-of-its-task",
        "The page of a task answers no question of another run",
        Patch(
            "runs/admin/tasks/admin.py",
            old='Run.objects.filter(task_id=task.id, id=request.POST.get("runId", "")[:64])',
            new='Run.objects.filter(id=request.POST.get("runId", "")[:64])',
        ),
        failing_test="tests/runs/admin/test_questions.py::"
        "test_on_the_page_of_a_task_only_its_current_question_is_answered",
    ),
    Guard(
        "admin-task-actions",
        "An operator without the permission controls no task",
        Patch(
            "runs/admin/tasks/admin.py",
            old="        if not self.has_operate_permission(request):\n            raise PermissionDenied\n",
            new="        return\n",
        ),
        failing_test="tests/runs/admin/test_questions.py::"
        "test_on_the_page_of_a_task_only_its_current_question_is_answered",
    ),
    Guard(
        "admin-session-close",
        "An operator without the permission closes no session",
        Patch(
            "runs/admin/session_admin.py",
            old="        if not self.has_close_permission(request):\n"
            "            raise PermissionDenied\n",
            new="        return\n",
        ),
        failing_test="tests/runs/admin/test_sessions.py::"
        "test_only_operators_who_may_change_sessions_close_them",
    ),
    Guard(
        "admin-webhook-actions",
        "An operator without the permission disables no webhook",
        Patch(
            "runs/admin/webhook_admin.py",
            old='@admin.action(description=_("Disable selected webhooks"), permissions=["operate"])',
            new='@admin.action(description=_("Disable selected webhooks"))',
        ),
        failing_test="tests/runs/admin/test_webhooks.py::test_every_action_needs_its_permission",
    ),
    Guard(
        "admin-replay",
        "An operator without the permission replays no delivery",
        Patch(
            "runs/admin/webhook_admin.py",
            old='@admin.action(description=_("Replay selected deliveries"), permissions=["operate"])',
            new='@admin.action(description=_("Replay selected deliveries"))',
        ),
        failing_test="tests/runs/admin/test_webhooks.py::test_every_action_needs_its_permission",
    ),
    Guard(
        "admin-artifacts-permission",
        "A run's page shows artifacts only to operators who may see artifacts",
        Patch(
            "runs/admin/runs/detail.py",
            old='    if not request.user.has_perm("artifacts.view_artifact"):\n        return {}\n',
            new="",
        ),
        failing_test="tests/runs/admin/test_permissions.py::"
        "test_the_run_page_shows_only_other_data_that_the_operator_may_see",
    ),
)

_RETENTION = (
    Guard(
        "ended-runs-alone-are-deleted",
        "A run is kept for its retention, also once it is hidden from the API",
        Patch(
            "runs/scheduler/retention.py",
            old="Run.objects.filter(ended_at__lte=oldest, hidden_at__isnull=False,",
            new="Run.objects.filter(hidden_at__isnull=False,",
        ),
        failing_test="tests/runs/scheduler/test_retention.py::test_a_hidden_run_is_kept_for_its_retention",
    ),
    Guard(
        "young-runs-are-not-hidden",
        "A run is hidden from the API only past its TTL",
        Patch(
            "runs/scheduler/retention.py",
            old="Run.objects.filter(ended_at__lte=oldest, hidden_at__isnull=True)",
            new="Run.objects.filter(ended_at__isnull=False, hidden_at__isnull=True)",
        ),
        failing_test="tests/runs/scheduler/test_retention.py::test_hiding_happens_once_and_keeps_the_row_for_the_admin",
    ),
    Guard(
        "started-run-does-not-expire-in-the-queue",
        "A run that has started since it was read does not time out in the queue",
        Patch(
            "runs/scheduler/queue_timeouts.py",
            old='change = Transition(run, {"status": RunStatus.QUEUED}, values)',
            new='change = Transition(run, {"status": Run.objects.get(id=run.id).status}, values)',
        ),
        failing_test="tests/runs/scheduler/test_retention.py::"
        "test_a_run_that_started_meanwhile_does_not_time_out_in_the_queue",
    ),
    Guard(
        "patient-runs-stay-queued",
        "Only a synchronous run times out in the queue",
        Patch(
            "runs/scheduler/queue_timeouts.py",
            old='Run.objects.filter(ended_at__isnull=True, status=RunStatus.QUEUED, mode="sync")',
            new="Run.objects.filter(ended_at__isnull=True, status=RunStatus.QUEUED)",
        ),
        failing_test="tests/runs/scheduler/test_retention.py::"
        "test_a_sync_run_that_is_queued_for_its_whole_timeout_fails",
    ),
    Guard(
        "runs-without-wakeups",
        "A worker that receives no wake-up looks for runs without one",
        Patch(
            "runs/worker/worker.py",
            old="self._release_unanswered_claim, self._poll)",
            new="self._release_unanswered_claim)",
        ),
        failing_test="tests/runs/worker/test_worker.py::test_a_run_without_a_wakeup_is_still_claimed",
    ),
    Guard(
        "failing-job-stops-no-other",
        "A maintenance job that fails does not stop the scheduler",
        Patch(
            "runs/scheduler/jobs.py",
            old="        except Exception:  # a defect,",
            new="        except ZeroDivisionError:  # a defect,",
        ),
        failing_test="tests/runs/scheduler/test_jobs.py::test_a_job_that_fails_stops_neither_the_others_nor_the_scheduler[error1]",
    ),
)

_AGENT = (
    Guard(
        "upload-artifact-of-workspace",
        "An agent uploads only artifacts of its own workspace",
        Patch(
            "runs/admission/uploads.py",
            old="id=artifact_id, workspace_id=run.workspace_id, tenant_id=run.tenant_id",
            new="id=artifact_id",
        ),
        failing_test="tests/runs/admission/test_uploads.py::"
        "test_an_artifact_of_the_run_is_read_and_one_of_another_workspace_is_not",
    ),
    Guard(
        "upload-artifact-of-task",
        "An agent uploads no artifact of a run of another task",
        Patch("runs/admission/uploads.py", old=" or not _is_of_task(row, run)", new=""),
        failing_test="tests/runs/admission/test_uploads.py::"
        "test_an_artifact_of_another_run_is_read_only_if_that_is_of_the_same_task",
    ),
    Guard(
        "upload-file-needs-read-file",
        "An agent uploads a file of the project only if it may read files",
        Patch(
            "runs/admission/uploads.py",
            old='READ_FILE not in run.inputs.get("tools", ())',
            new="False",
        ),
        failing_test="tests/runs/admission/test_uploads.py::"
        "test_no_file_is_read_for_a_run_without_read_file_or_where_policy_asks_for_it",
    ),
    Guard(
        "upload-file-as-policy-allows",
        "An agent uploads no file of the project if policy asks a person before it is read",
        Patch(
            "runs/admission/uploads.py",
            old='.decision != "allow":',
            new='.decision == "":',
        ),
        failing_test="tests/runs/admission/test_uploads.py::"
        "test_no_file_is_read_for_a_run_without_read_file_or_where_policy_asks_for_it",
    ),
    Guard(
        "agent-after-a-takeover",
        "An action that the model chose for the page before a takeover is not performed",
        Patch(
            "runs/agent/pages/page_state.py",
            old='    if was_taken_over and step["tool"] != TASK_START.name:\n',
            new="    if False:\n",
        ),
        failing_test="tests/runs/agent/test_takeover.py::"
        "test_a_page_returned_before_the_next_call_is_indexed_again_too",
    ),
    Guard(
        "agent-after-a-takeover-in-a-turn",
        "A page that was read between two calls of a turn is not yet known to the model",
        Patch(
            "runs/agent/journal_view.py",
            old="for entry in journal[: turns[-1] + 1]]",
            new="for entry in journal]",
        ),
        failing_test="tests/runs/agent/test_takeover.py::"
        "test_a_click_in_flight_ends_and_is_not_repeated",
    ),
    Guard(
        "agent-result-fence",
        "What a page may have written of a result stands between the fence lines",
        Patch(
            "runs/agent/prompt.py",
            old='has_page_text = call["name"] in (*ACTIONS, READ_RESULT)',
            new="has_page_text = False",
        ),
        failing_test="tests/runs/agent/test_model_messages.py::"
        "test_what_a_page_may_have_written_is_between_fence_lines[read_result-output5]",
    ),
    Guard(
        "agent-page-fence",
        "A page cannot end the fence around its content",
        Patch(
            "runners/actions/untrusted_page.py",
            old="\\n{harmless}\\n",
            new="\\n{text}\\n",
        ),
        failing_test="tests/runs/agent/test_real_pages.py::"
        "test_each_call_of_a_turn_gets_its_own_page_between_fence_lines",
    ),
    Guard(
        "agent-tokens",
        "A run of the agent has a maximum of tokens",
        Patch(
            "runs/agent/budget.py",
            old='if usage["inputTokens"] + usage["outputTokens"] >= settings.AGENT_MAX_TOKENS:',
            new="if False:",
        ),
        failing_test="tests/runs/agent/test_answers_and_budgets.py::test_an_exhausted_budget_ends_a_run_cleanly[limit0]",
    ),
    Guard(
        "agent-cost",
        "A run of the agent has a maximum cost",
        Patch(
            "runs/agent/budget.py",
            old="return max_cost is not None and cost is not None and cost >= max_cost",
            new="return False",
        ),
        failing_test="tests/runs/agent/test_answers_and_budgets.py::test_an_exhausted_budget_ends_a_run_cleanly[limit1]",
    ),
    Guard(
        "agent-turns",
        "The model has a maximum of turns, and in the last one it can only complete",
        Patch(
            "runs/agent/loop.py",
            old='is_last = number >= inputs.get("maxSteps", MAX_STEPS)',
            new="is_last = False",
        ),
        failing_test="tests/runs/agent/test_answers_and_budgets.py::test_the_last_turn_can_only_complete",
    ),
    Guard(
        "agent-last-turn-calls",
        "In the last turn no other call than the completion is made",
        Patch(
            "runs/agent/loop.py",
            old="return ({only}, {}) if only else ({tool.name for tool in tools}, remote)",
            new="return {tool.name for tool in tools}, remote",
        ),
        failing_test="tests/runs/agent/test_answers_and_budgets.py::"
        "test_a_call_of_another_tool_in_the_last_turn_is_not_made",
    ),
    Guard(
        "agent-repairs-once",
        "An answer that does not fit its schema is repaired once",
        Patch(
            "runs/agent/loop.py",
            old="and (repairs or not is_refused(completion)):",
            new="and not is_refused(completion):",
        ),
        failing_test="tests/runs/agent/test_answers_and_budgets.py::"
        "test_an_answer_that_never_fits_the_schema_fails_with_the_reason",
    ),
    Guard(
        "agent-tool-list",
        "The agent calls only the tools that it was given",
        Patch(
            "runs/agent/call_validation.py",
            old="    if call.name not in offered:\n",
            new="    if False:\n",
        ),
        failing_test="tests/runs/agent/test_questions_and_policy.py::test_only_requested_tools_are_offered_and_called",
    ),
    Guard(
        "agent-tool-arguments",
        "A call of the model with invalid arguments is not made",
        Patch(
            "runs/agent/call_validation.py",
            old="            check_args(tool, call.arguments)\n",
            new="            pass\n",
        ),
        failing_test="tests/runs/agent/test_agent_task.py::"
        "test_an_invalid_call_is_reported_to_the_model_and_not_made[call5-nope]",
    ),
    Guard(
        "agent-tools-of-the-caller",
        "The agent has no tool whose scope its caller lacks",
        Patch(
            "runs/agent/tools.py",
            old="if not {scope_of(tool), *further_scopes_of(tool)} <= principal.scopes:",
            new="if False:",
        ),
        failing_test="tests/runs/agent/test_questions_and_policy.py::"
        "test_a_caller_with_read_scope_has_an_agent_with_read_tools_only",
    ),
    Guard(
        "agent-developer-tools",
        "The agent has no developer tool, even in developer mode",
        Patch(
            "runs/agent/tools.py",
            old="if tool.name in AGENT_TOOLS or tool.developer:",
            new="if tool.name in AGENT_TOOLS:",
        ),
        failing_test="tests/runs/agent/test_questions_and_policy.py::"
        "test_developer_tools_are_not_offered_to_the_agent_even_in_developer_mode"
        "[execute_command]",
    ),
    Guard(
        "agent-wanted-tools",
        "A submit that names a tool which the agent cannot have is refused",
        Patch(
            "runs/agent/tools.py",
            old="        if not matches:\n",
            new="        if False:\n",
        ),
        failing_test="tests/runs/agent/test_questions_and_policy.py::"
        "test_a_tool_that_the_agent_cannot_have_is_rejected_at_submit",
    ),
    Guard(
        "agent-completes-alone",
        "A completion beside other calls waits for their results",
        Patch(
            "runs/agent/call_validation.py",
            old="    if call.name == COMPLETE and not is_alone:\n",
            new="    if False:\n",
        ),
        failing_test="tests/runs/agent/test_agent_task.py::"
        "test_a_completion_beside_other_calls_waits_for_their_results",
    ),
    Guard(
        "agent-cut-turn",
        "No call of a turn that was cut is made",
        Patch(
            "runs/agent/call_validation.py",
            old='    if done.stop in ("length", "refusal"):\n',
            new="    if False:\n",
        ),
        failing_test="tests/runs/agent/test_unusual_replies.py::"
        "test_a_turn_cut_at_the_token_limit_makes_none_of_its_calls",
    ),
    Guard(
        "agent-call-once",
        "Of two calls with one id one is made (the second is refused, and the loop makes each id once)",
        (
            Patch(
                "runners/llm/tool_calls.py", old="    if own_id in used_ids:", new="    if False:"
            ),
            Patch(
                "runs/agent/loop.py",
                old="    made = calls_since(journal, number)\n",
                new='    made = [one for one in journal if one.input["kind"] == CALL'
                ' and one.input["turn"] == number]\n',
            ),
            Patch(
                "runs/agent/loop.py",
                old="    for call in requested:\n"
                '        if "refused" not in call and call["name"] != COMPLETE'
                ' and call["id"] not in made:',
                new="    for call in requested[len(made) :]:\n"
                '        if "refused" not in call and call["name"] != COMPLETE:',
            ),
        ),
        failing_test="tests/runs/agent/test_agent_task.py::test_of_two_calls_with_one_id_one_is_made",
    ),
    Guard(
        "agent-remote-tools-scope",
        "The agent of a caller that may only read has no tools of runners",
        Patch(
            "runs/agent/remote_tools.py",
            old="has_scope = REQUIRED_SCOPE in principal.scopes",
            new="has_scope = True",
        ),
        failing_test="tests/runs/agent/test_runner_tools.py::test_a_caller_with_read_scope_has_no_runners",
    ),
    Guard(
        "agent-remote-tools-are-fixed",
        "A runner that was added after the submit is not offered to the run",
        (
            Patch(
                "runs/agent/remote_tools.py",
                old="    if not remote:\n        return {}\n",
                new="",
            ),
            Patch(
                "runs/agent/remote_tools.py",
                old="[_on_targets(offered.get(name), name, ids) for name, ids in target_ids.items()]",
                new="list(offered.values())",
            ),
        ),
        failing_test="tests/runs/agent/test_runner_tools.py::"
        "test_a_runner_added_after_submit_is_not_offered_to_the_run",
    ),
    Guard(
        "agent-fallback",
        "A runner's tool falls back to the local tool only where the agent has that tool",
        Patch(
            "runs/agent/remote_tools.py",
            old='may_fall_back=tool in inputs["tools"])',
            new="may_fall_back=True)",
        ),
        failing_test="tests/runs/agent/test_runner_tools.py::"
        "test_the_local_tool_is_the_fallback_only_where_the_agent_has_it[False]",
    ),
    Guard(
        "agent-results-of-its-run",
        "The agent reads no stored result of another run",
        Patch(
            "runs/execution/step_context.py",
            old="return read_chunk_of_run(run_id=run.id, artifact_id=artifact_id,",
            new="from artifacts.models import Artifact\n\n"
            "        of = Artifact.objects.get(id=artifact_id).run_id\n"
            "        return read_chunk_of_run(run_id=of, artifact_id=artifact_id,",
        ),
        failing_test="tests/runs/agent/test_agent_task.py::test_a_stored_result_of_another_run_is_not_read",
    ),
)

_STATE_MACHINE = (
    Guard(
        "run-status-transitions",
        "A run takes no status that its status does not allow",
        Patch(
            "runs/lifecycle/state_machine.py",
            old="    if to not in ALLOWED[only_from]:\n",
            new="    if False:\n",
        ),
        failing_test="tests/runs/lifecycle/test_state_machine.py::test_a_run_changes_status_only_along_legal_pairs",
    ),
    Guard(
        "guarded-transition",
        "A transition whose guard holds no row writes nothing",
        Patch(
            "runs/lifecycle/writes.py",
            old="for name, value in change.guard.items():",
            new="for name, value in ():",
        ),
        failing_test="tests/runs/lifecycle/test_transition.py::test_a_guard_that_does_not_match_changes_no_row[guard0]",
    ),
    Guard(
        "guarded-transition-on-sqlite",
        "A transition whose guard holds no row writes nothing",
        Patch(
            "runs/lifecycle/writes.py",
            old="for name, value in change.guard.items():",
            new="for name, value in ():",
        ),
        failing_test="tests/runs/lifecycle/test_transition.py::test_a_guard_that_does_not_match_changes_no_row[guard0]",
        database="sqlite",
    ),
    Guard(
        "clock-set-back",
        "A clock that is set back sets no time of a run back",
        Patch(
            "runs/lifecycle/writes.py",
            old="CASE WHEN updated_at > %s THEN",
            new="CASE WHEN false AND updated_at > %s THEN",
        ),
        failing_test="tests/runs/lifecycle/test_state_machine.py::test_timestamps_never_decrease_when_the_clock_does",
    ),
    Guard(
        "end-not-before-its-start",
        "A clock that is set back ends no run before it was created",
        Patch(
            "runs/lifecycle/state_machine.py",
            old='"ended_at": max(datetime.now(UTC), run.created_at)}',
            new='"ended_at": datetime.now(UTC)}',
        ),
        failing_test="tests/runs/lifecycle/test_state_machine.py::test_timestamps_never_decrease_when_the_clock_does",
    ),
)


def _refused(name: str, promise: str, table: str, constraint: str) -> Guard:
    """Return the guard of a constraint that refuses a row which no service writes."""
    return Guard(
        name,
        promise,
        Sql(f"ALTER TABLE {table} DROP CONSTRAINT {constraint}"),
        failing_test=f"tests/runs/models/test_constraints.py::test_the_database_refuses_a_row[{constraint}]",
    )


_INCONSISTENT = (
    "tests/runs/lifecycle/test_state_machine.py::test_the_database_refuses_an_inconsistent_run"
)
_CONSTRAINTS = (
    Guard(
        "run-status-known",
        "A run has a known status (the constraint of its end implies it)",
        Sql(
            "ALTER TABLE runs_run DROP CONSTRAINT run_status_known,"
            " DROP CONSTRAINT run_ended_iff_terminal"
        ),
        failing_test=f"{_INCONSISTENT}[nonsense0]",
    ),
    Guard(
        "run-ended-iff-terminal",
        "A run has a time of its end if and only if its status is terminal",
        Sql("ALTER TABLE runs_run DROP CONSTRAINT run_ended_iff_terminal"),
        failing_test=f"{_INCONSISTENT}[nonsense1]",
    ),
    Guard(
        "run-failure-explained",
        "A run that failed or was canceled has an error",
        Sql("ALTER TABLE runs_run DROP CONSTRAINT run_failure_is_explained"),
        failing_test=f"{_INCONSISTENT}[nonsense4]",
    ),
    _refused("step-status-known", "A step has a known status", "runs_runstep", "step_status_known"),
    _refused(
        "one-step-a-number",
        "A run has one step of each index",
        "runs_runstep",
        "step_index_per_run",
    ),
    _refused(
        "one-event-a-number",
        "A run has one event of each seq",
        "runs_runevent",
        "event_seq_per_run",
    ),
    _refused("one-slot-a-run", "A run holds one slot", "runs_slot", "runs_slot_run_id_key"),
    _refused("task-status-known", "A task has a known status", "runs_task", "task_status_known"),
    _refused(
        "takeover-has-its-time",
        "A task has the time of its takeover if and only if it is taken over",
        "runs_task",
        "task_takeover_has_its_time",
    ),
    _refused(
        "one-task-event-a-number",
        "A task has one event of each seq",
        "runs_taskevent",
        "task_event_seq_per_task",
    ),
    _refused(
        "one-message-a-number",
        "A task has one message of each number",
        "runs_taskmessage",
        "message_number_per_task",
    ),
    _refused(
        "one-message-a-key",
        "A task has one message for each idempotency key of a principal",
        "runs_taskmessage",
        "message_key_per_task",
    ),
    _refused(
        "delivery-status-known",
        "A delivery has a known status",
        "runs_webhookdelivery",
        "delivery_status_known",
    ),
    _refused(
        "delivery-about-one-thing",
        "A delivery is about a run or about a decision",
        "runs_webhookdelivery",
        "delivery_tells_one_thing",
    ),
    _refused(
        "one-total-a-status",
        "A workspace has one total for each template and status",
        "runs_runtotal",
        "run_total_once",
    ),
    Guard(
        "one-retry-a-run",
        "The database has one retry of a run",
        Sql("DROP INDEX run_is_retried_once", sqlite="DROP INDEX run_is_retried_once"),
        failing_test="tests/runs/models/test_constraints.py::test_the_database_refuses_a_row[run_is_retried_once]",
    ),
)


def _total(name: str, promise: str, trigger: str, test: str) -> Guard:
    """Return the guard of a trigger that keeps the totals."""
    drop = f"DROP TRIGGER {trigger}"
    return Guard(
        name,
        promise,
        Sql(f"{drop} ON runs_run", sqlite=drop),
        failing_test=f"tests/runs/queries/test_totals.py::{test}",
    )


_TOTALS = (
    _total(
        "total-of-a-submit",
        "The total of a list counts a run as soon as it is submitted",
        "runs_total_added",
        "test_a_total_counts_only_matching_runs_of_its_workspace[{}]",
    ),
    _total(
        "total-of-a-status",
        "The total of a status follows the runs that leave and enter it",
        "runs_total_moved",
        "test_a_total_follows_a_run_through_its_status_changes[False]",
    ),
    _total(
        "total-of-a-deletion",
        "The total of a list does not count a run that was deleted",
        "runs_total_removed",
        "test_deleting_a_run_that_was_not_hidden_lowers_the_total",
    ),
    Guard(
        "missing-triggers-are-restored",
        "The next migration restores triggers that are missing, and corrects the totals",
        Patch(
            "runs/queries/totals.py",
            old="    if missing_triggers() and _is_migrated():\n        repair_totals()\n",
            new="    return\n",
        ),
        failing_test="tests/runs/queries/test_totals.py::"
        "test_the_next_migrate_restores_missing_triggers_and_the_totals",
    ),
)

_TEMPLATES = (
    Guard(
        "searches-need-evidence",
        "A search of which nothing shows that it happened fails",
        Patch(
            "runners/browser/interaction/page_watch.py",
            old='        if self.with_query(query):\n            return "request"\n',
            new='        return "request"\n',
        ),
        failing_test=f"{_SEARCHES}::test_a_field_that_does_nothing_is_a_failed_search[alone]",
    ),
    Guard(
        "clocks-are-no-evidence",
        "What a page changes by itself does not show that a search happened",
        Patch(
            "runners/browser/page/changes.js",
            old="    changed: differing.some(({ shownAt }) => moment - shownAt >= PROOF_MS),\n",
            new="    changed: differing.length > 0,\n",
        ),
        failing_test=f"{_SEARCHES}::test_a_clock_is_no_evidence_of_a_search",
    ),
    Guard(
        "searches-are-sent-once",
        "A search that Enter began is not sent again with the button",
        Patch(
            "runners/browser/interaction/search_submit.py",
            old="    if await page_watch.has_begun(interactor.tab, query):\n",
            new="    if False:\n",
        ),
        failing_test="tests/runs/task_templates/test_search_buttons.py::"
        "test_a_search_that_enter_began_is_not_sent_again",
    ),
    Guard(
        "polling-is-no-reaction",
        "What a page requests by itself does not show that a form was sent",
        Patch(
            "runners/browser/interaction/page_watch.py",
            old="        if signature not in self.known:\n            self.has_sent = True\n",
            new="        self.has_sent = True\n",
        ),
        failing_test=f"{_FORMS}::test_a_page_that_only_ticks_and_polls_has_not_sent_its_form",
    ),
    Guard(
        "clocks-are-no-next-page",
        "What a page changes by itself is not taken for the next page of a list",
        Patch(
            "runners/browser/tools/read_current_page.py",
            old='    return change["stays"] or change["pieces"] > MAX_CLOCKS, change["pieces"] > 0\n',
            new="    return True, False\n",
        ),
        failing_test="tests/runs/task_templates/test_paginated_extract.py::"
        "test_a_clock_is_no_next_page",
    ),
    Guard(
        "http-errors-fail",
        "A page with an HTTP error status fails its step",
        Patch(
            "runs/task_templates/page_inputs.py",
            old='    if status < 400 or inputs.get("onHttpError") == "keep":\n',
            new="    if status:\n",
        ),
        failing_test=f"{_HTTP_ERRORS}::test_a_page_that_the_server_does_not_have_is_a_failed_item",
    ),
    Guard(
        "whole-texts-are-kept",
        "A run keeps the whole text of a page, not only what its answer shows",
        Patch(
            "runs/task_templates/page_inputs.py",
            old='    return {"whole": True} | (',
            new='    return {"whole": False} | (',
        ),
        failing_test=f"{_WHOLE_TEXTS}::test_a_cut_text_says_so_and_where_to_read_on",
    ),
    Guard(
        "refused-logins-fail",
        "A login page that still asks for a password after the submit is a failed login",
        Patch(
            "runners/browser/tools/check_login.py",
            old="            raise await _seems_refused(sign, page, ctx)\n",
            new="            await _seems_refused(sign, page, ctx)\n",
        ),
        failing_test=f"{_LOGINS}::test_a_page_that_still_asks_for_a_password_is_a_failed_login",
    ),
    Guard(
        "indicators-that-held-before",
        "A success indicator that held before the submit is no evidence",
        Patch(
            "runs/task_templates/builtin/submit_and_verify.py",
            old='        shows_nothing = met is None or (met and page.get("heldBefore"))\n',
            new="        shows_nothing = met is None\n",
        ),
        failing_test=f"{_FORMS}::test_an_indicator_that_held_before_the_submit_is_no_success",
    ),
    Guard(
        "forms-that-are-shown-again",
        "A page that shows the submitted form again does not show that it was accepted",
        Patch(
            "runs/task_templates/builtin/submit_and_verify.py",
            old='(again and not again["seemsAccepted"])',
            new="False",
        ),
        failing_test=f"{_FORMS}::test_a_form_that_the_server_shows_again_is_no_success[words]",
    ),
    Guard(
        "replayed-conditions",
        "A replayed step that waits for a condition fails if it does not become true",
        Patch(
            "runs/task_templates/builtin/replay_success_path.py",
            old="        _check_condition(name, output)\n",
            new="",
        ),
        failing_test=f"{_REPLAYS}::"
        "test_a_step_that_did_not_reach_what_it_reached_before_fails[a condition]",
    ),
)

GUARDS = (
    *_LEASES,
    *_CLAIMS,
    *_SHARED_RUNS,
    *_EFFECTS,
    *_TOOL_CALLS,
    *_SUBMISSION,
    *_SECRETS,
    *_WAITING_RUNS,
    *_RETRY,
    *_DIRECT_CALLS,
    *_TASKS,
    *_SESSIONS,
    *_VISIBILITY,
    *_WEBHOOKS,
    *_READERS,
    *_ADMIN,
    *_RETENTION,
    *_AGENT,
    *_STATE_MACHINE,
    *_CONSTRAINTS,
    *_TOTALS,
    *_TEMPLATES,
    *own_browser.RUNS,
)
