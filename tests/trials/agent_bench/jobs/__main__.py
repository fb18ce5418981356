"""Do the twenty jobs as an MCP host over stdio, and print what they cost.

    python -m tests.trials.agent_bench.jobs --manual FOLDER [--only 1,2] [--transcripts FOLDER]

FOLDER has the HTML files of PostgreSQL 15's manual (Debian's package postgresql-doc-15).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.trials.agent_bench.jobs import first_ten, new_ten
from tests.trials.agent_bench.jobs.addresses import Addresses
from tests.trials.agent_bench.jobs.host import Counted, JobHost, host_environment, stop_stack
from tests.trials.agent_bench.jobs.job_site import closed_port, serve_job_site
from tests.trials.agent_bench.jobs.manual import Manual, serve_manual
from tests.trials.agent_bench.jobs.right_answers import CHECKS, Facts

JOBS = first_ten.JOBS | new_ten.JOBS
Job = Callable[[JobHost, Addresses], Any]
HEAD = f"{'job':>3} {'':<16} {'calls':>5} {'bytes':>7} {'on wire':>8} {'s':>6}  answer\n"


def main() -> int:
    """Do the jobs; return 1 if an answer was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.trials.agent_bench.jobs")
    parser.add_argument("--manual", type=Path, required=True)
    parser.add_argument("--only", type=_numbers, help="numbers of jobs, separated by commas")
    parser.add_argument("--transcripts", type=Path, help="write the messages of each job here")
    options = parser.parse_args()
    numbers = list(JOBS) if options.only is None else options.only
    sys.stdout.write(HEAD)
    with tempfile.TemporaryDirectory() as home, serve_manual(options.manual) as manual:
        env = host_environment(Path(home))
        try:
            right = [_do(n, env, manual, options) for n in numbers]
        finally:
            stop_stack(env)
    return int(not all(right))


def _numbers(text: str) -> list[int]:
    """Return the numbers of jobs in the text of an option; ValueError if there is no such job."""
    numbers = [int(number) for number in text.split(",")]
    if unknown := set(numbers) - set(JOBS):
        raise ValueError(f"no such jobs: {unknown}")
    return numbers


def answer_of(job: Job, env: dict[str, str], counted: Counted, at: Addresses) -> Any:
    """Do a job with a host of its own; return its answer, or why the host could not go on."""
    try:
        with closing(JobHost(env, counted)) as host:
            return job(host, at)
    except Exception as error:  # noqa: BLE001 - a lost server or a wrong answer ends this job alone
        return f"the host was stuck: {error!r}"


def _do(number: int, env: dict[str, str], manual: str, options: argparse.Namespace) -> bool:
    """Do one job with a host and a site of its own; print its line."""
    job, counted = JOBS[number], Counted()
    with serve_job_site() as (site, data):
        answer = answer_of(job, env, counted, Addresses(manual, site.url, closed_port()))
        is_right = CHECKS[number](answer, Facts(Manual(options.manual), site, data))
    shown = "right" if is_right else f"WRONG: {str(answer)[:200]}"
    sys.stdout.write(
        f"{number:>3} {job.__name__:<16} {counted.calls:>5} {counted.bytes:>7}"
        f" {counted.wire_bytes:>8} {counted.seconds:>6.1f}  {shown}\n"
    )
    sys.stdout.flush()
    if options.transcripts:
        options.transcripts.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(entry, ensure_ascii=False) for entry in counted.transcript]
        path = options.transcripts / f"{number:02}-{job.__name__}.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines))
    return is_right


if __name__ == "__main__":
    sys.exit(main())
