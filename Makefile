# `make` lists the targets. Each target installs what it needs first.
MAKEFLAGS += --no-print-directory
PYTHON ?= $(firstword $(wildcard .venv/bin/python) python3)
VENV := .venv/bin
CHECKED := config decisions artifacts runners runs mcp_server tests
# A failed test is rerun up to twice and listed in the summary: on a shared machine, tests that wait
# for other processes can time out without a defect. `make faults` reruns nothing.
RERUNS := --reruns 2 --reruns-delay 3 --rerun-show-tracebacks
BENCHMARKS := mcp_start mcp_calls durable_runs batch_pages remote_pages artifact_chunks event_stream list_runs admin_lists audit_log \
	policy_check chat_decision gate runner_calls runner_throughput search_files list_files dry_diff validate_script \
	browser_actions agent_turns modules_entered
.DEFAULT_GOAL := help
# Otherwise each worker and each process that a test starts would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
# Use UTF-8, whatever the locale is.
export PYTHONUTF8 := 1
.PHONY: help setup setup-tests run test test-sqlite test-postgresql test-kills faults guards lint fix bench doctor

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

setup: ## install what running needs: .venv, packages, Chromium
	@$(PYTHON) .ci/setup.py run

setup-tests: ## also install what the tests need: PostgreSQL, Redis, ripgrep, bubblewrap, tools
	@$(PYTHON) .ci/setup.py test

run: setup ## start all services, run the demo, serve until Ctrl-C (ONCE=1: stop after the demo)
	@$(VENV)/python manage.py up --demo $(if $(filter-out 0,$(ONCE)),--once)

test: test-sqlite test-postgresql test-kills ## run all tests, on SQLite and on PostgreSQL

test-sqlite: setup-tests ## run the tests on SQLite
	@$(VENV)/python -m pytest -n 3 --dist worksteal -q $(RERUNS) --ignore tests/faults $(ARGS)

test-postgresql: setup-tests ## run the tests that depend on the database, on PostgreSQL
	@CONTINUITY_TEST_DATABASE=postgresql $(VENV)/python -m pytest -n 3 --dist worksteal -q $(RERUNS) \
		--what-a-database-decides tests/integration tests/contract $(ARGS)

test-kills: setup-tests ## run the tests that kill processes, except the long ones
	@CONTINUITY_TEST_DATABASE=postgresql $(VENV)/python -m pytest -n 2 --dist worksteal -q $(RERUNS) tests/faults $(ARGS)

faults: setup-tests ## run all tests that kill processes, one at a time, on both databases
	@$(VENV)/python -m pytest -q -m "soak or not soak" tests/faults $(ARGS)
	@CONTINUITY_TEST_DATABASE=postgresql $(VENV)/python -m pytest -q -m "soak or not soak" tests/faults $(ARGS)

guards: setup-tests ## remove each protection of the product once; its test must fail then
	@$(VENV)/python -m tests.guards $(ARGS)

lint: setup-tests ## check style, types and import contracts
	@$(VENV)/ruff check --quiet .
	@$(VENV)/ruff format --check --quiet . || { echo "Some files are not formatted. Run: make fix"; exit 1; }
	@$(VENV)/mypy --no-error-summary $(CHECKED)
	@$(VENV)/lint-imports --no-cache > .venv/lint-imports.log || { cat .venv/lint-imports.log; exit 1; }
	@echo "Style, types and import contracts: no errors."

fix: setup-tests ## fix style errors and format the code
	@$(VENV)/ruff check --fix --quiet . ; $(VENV)/ruff format --quiet .

bench: setup-tests ## run the benchmarks; each prints one line of JSON
	@for name in $(BENCHMARKS); do $(VENV)/python -m tests.benchmarks.$$name || exit 1; done

doctor: setup ## check every part of this installation
	@$(VENV)/python manage.py doctor
