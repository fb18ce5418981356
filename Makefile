# `make` lists the targets. Each target installs what it needs first.
MAKEFLAGS += --no-print-directory
PYTHON ?= $(firstword $(wildcard .venv/bin/python) python3)
VENV := .venv/bin
CHECKED := config decisions artifacts runners runs mcp_server tests
BENCHMARKS := mcp_start mcp_calls durable_runs claims batch_pages remote_pages artifact_chunks event_stream list_runs run_search run_statistics admin_lists admin_pages audit_log \
	policy_check chat_decision gate runner_calls runner_throughput search_files list_files dry_diff validate_script \
	browser_actions agent_turns modules_entered extension_sockets
.DEFAULT_GOAL := help
# Otherwise each worker and each process that a test starts would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
# Use UTF-8, whatever the locale is.
export PYTHONUTF8 := 1
.PHONY: help setup setup-tests run test quick all-tests test-costs faults upgrade-trial fleet-trial volume-trial soak fuzz-cost guards lint lint-style lint-types lint-imports fix bench hostile-clicks agent-bench extension doctor

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

setup: ## install what running needs: .venv, packages, Chromium
	@$(PYTHON) .ci/setup.py run

setup-tests: ## also install what the tests need: PostgreSQL, Redis, pgbouncer, ripgrep, bubblewrap, tools
	@$(PYTHON) .ci/setup.py test

run: setup ## start all services, run the demo, serve until Ctrl-C (ONCE=1: stop after the demo)
	@$(VENV)/python manage.py up --demo $(if $(filter-out 0,$(ONCE)),--once)

test: setup-tests ## run the tests: on PostgreSQL, then on SQLite what depends on it
	@$(VENV)/python -m tests $(ARGS)

quick: setup-tests ## check style, and run the tests that take about a minute
	@$(MAKE) lint-style
	@$(VENV)/python -m tests quick $(ARGS)

all-tests: setup-tests ## run the tests, and those that are marked slow
	@$(VENV)/python -m tests all $(ARGS)

test-costs: setup-tests ## run the tests on PostgreSQL and print what they cost
	@CONTINUITY_TEST_DATABASE=postgresql $(VENV)/python -m pytest -q -n 4 --dist worksteal -p tests.costs \
		--costs=.venv/test-costs $(ARGS)

faults: setup-tests ## run all tests that kill processes, one at a time, on both databases
	@$(VENV)/python -m pytest -q -m "soak or not soak" tests/faults $(ARGS)
	@CONTINUITY_TEST_DATABASE=postgresql $(VENV)/python -m pytest -q -m "soak or not soak" tests/faults $(ARGS)

upgrade-trial: setup-tests ## upgrade from the commit OLD to this code under load, and go back (MINUTES=5)
	@$(VENV)/python -m tests.trials.upgrade_trial --old $(OLD) --minutes $(or $(MINUTES),5)

fuzz-cost: setup-tests ## search for the inputs that cost each parser the most (ARGS="30 NAME")
	@$(VENV)/python -m tests.trials.fuzz_cost $(ARGS)

volume-trial: setup-tests ## time operations with a million runs beside a thousand (RUNS=1000000)
	@$(VENV)/python -m tests.trials.volume_trial $(or $(RUNS),1000000)

fleet-trial: setup-tests ## run a fleet of compose and the runner on a real Docker engine, by the documented commands
	@$(VENV)/python -m tests.trials.fleet_trial $(ARGS)

soak: setup-tests ## mixed work under bursts of faults (MINUTES=20 DATABASE=postgresql)
	@$(VENV)/python -m tests.trials.soak --minutes $(or $(MINUTES),20) --database $(or $(DATABASE),postgresql) $(ARGS)

guards: setup-tests ## remove each protection of the product once; its test must fail then
	@$(VENV)/python -m tests.guards $(ARGS)

lint: setup-tests ## check style, types and import contracts
	@$(MAKE) --jobs 3 --output-sync lint-style lint-types lint-imports
	@echo "Style, types and import contracts: no errors."

lint-style:
	@$(VENV)/ruff check --quiet .
	@$(VENV)/ruff format --check --quiet . || { echo "Some files are not formatted. Run: make fix"; exit 1; }

lint-types:
	@$(VENV)/mypy --num-workers auto --no-error-summary $(CHECKED)

lint-imports:
	@$(VENV)/lint-imports --no-cache > .venv/lint-imports.log || { cat .venv/lint-imports.log; exit 1; }

fix: setup-tests ## fix style errors and format the code
	@$(VENV)/ruff check --fix --quiet . ; $(VENV)/ruff format --quiet .

bench: setup-tests ## run the benchmarks; each prints one line of JSON
	@for name in $(BENCHMARKS); do $(VENV)/python -m tests.benchmarks.$$name || exit 1; done

extension: setup ## generate the page scripts of the browser extension and pack it (ORIGIN=https://… also pairs from there)
	@$(VENV)/python manage.py pack_extension --out $(or $(OUT),.venv/continuity-extension.zip) $(addprefix --origin ,$(ORIGIN))

hostile-clicks: setup-tests ## click ten thousand times on hostile pages, for at most 40 minutes, or ARGS="--moves 500"
	@$(VENV)/python -m tests.benchmarks.hostile_clicks $(ARGS)

agent-bench: setup-tests ## run forty agent tasks with the configured model, or ARGS="--model scripted"
	@$(VENV)/python -m tests.trials.agent_bench $(ARGS)

doctor: setup ## check every part of this installation
	@$(VENV)/python manage.py doctor
