"""What the host is given with a job."""

from __future__ import annotations

from dataclasses import dataclass

from tests.trials.agent_bench.jobs.job_site import PASSWORD, USER


@dataclass(frozen=True)
class Addresses:
    """The addresses of the manual and of the site, an account, and a port without a server."""

    manual: str
    site: str
    closed_port: int
    user: str = USER
    password: str = PASSWORD
