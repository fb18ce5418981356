# What can be done here: `make` lists it. Every target sets up what it needs first.
MAKEFLAGS += --no-print-directory
PYTHON ?= $(firstword $(wildcard .venv/bin/python) python3)
VENV := .venv/bin
CHECKED := config decisions artifacts runners runs mcp_server tests
# A test is tried up to twice more, and then named in the summary: a shared machine stands still for
# seconds, and a test that waits for other processes cannot tell that from a defect. faults: never.
TRY_AGAIN := --reruns 2 --reruns-delay 3 --rerun-show-tracebacks
BENCHMARKS := mcp_start mcp_calls durable_runs batch_pages remote_pages artifact_chunks event_stream list_runs admin_lists audit_log \
	policy_check chat_decision gate runner_calls runner_throughput search_files list_files dry_diff validate_script \
	browser_actions agent_turns modules_entered
.DEFAULT_GOAL := help
# Each worker and each process that a test starts would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE
# Whatever encoding the locale has.
export PYTHONUTF8 := 1
.PHONY: help setup setup-tests run test test-sqlite test-postgresql test-kills faults lint fix bench doctor

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

setup: ## set up what running needs: .venv, packages, a Chromium
	@$(PYTHON) .ci/setup.py run

setup-tests: ## set up what the tests need as well: PostgreSQL, Redis, ripgrep, bubblewrap, the tools
	@$(PYTHON) .ci/setup.py test

run: setup ## start everything, do the first run, serve until Ctrl-C (ONCE=1: stop after the run)
	@$(VENV)/python manage.py up --demo $(if $(filter-out 0,$(ONCE)),--once)

test: test-sqlite test-postgresql test-kills ## run the whole suite, on SQLite and on PostgreSQL

test-sqlite: setup-tests ## run the suite on SQLite
	@$(VENV)/python -m pytest -n 3 --dist worksteal -q $(TRY_AGAIN) --ignore tests/faults $(ARGS)

test-postgresql: setup-tests ## run what a database could decide again, on PostgreSQL
	@CONTINUITY_TEST_DATABASE=postgresql $(VENV)/python -m pytest -n 3 --dist worksteal -q $(TRY_AGAIN) \
		--what-a-database-decides tests/integration tests/contract $(ARGS)

test-kills: setup-tests ## run the tests that kill processes, without the long ones
	@CONTINUITY_TEST_DATABASE=postgresql $(VENV)/python -m pytest -n 2 --dist worksteal -q $(TRY_AGAIN) tests/faults $(ARGS)

faults: setup-tests ## run all tests that kill processes, alone, on both databases
	@$(VENV)/python -m pytest -q -m "soak or not soak" tests/faults $(ARGS)
	@CONTINUITY_TEST_DATABASE=postgresql $(VENV)/python -m pytest -q -m "soak or not soak" tests/faults $(ARGS)

lint: setup-tests ## check style, types and who imports whom
	@$(VENV)/ruff check --quiet .
	@$(VENV)/ruff format --check --quiet . || { echo "Some files are not formatted: make fix"; exit 1; }
	@$(VENV)/mypy --no-error-summary $(CHECKED)
	@$(VENV)/lint-imports --no-cache > .venv/lint-imports.log || { cat .venv/lint-imports.log; exit 1; }
	@echo "Style, types and imports are in order."

fix: setup-tests ## put right what the style checker can
	@$(VENV)/ruff check --fix --quiet . ; $(VENV)/ruff format --quiet .

bench: setup-tests ## run the benchmarks; each prints one line of JSON
	@for name in $(BENCHMARKS); do $(VENV)/python -m tests.benchmarks.$$name || exit 1; done

doctor: setup ## check every part of this installation
	@$(VENV)/python manage.py doctor
