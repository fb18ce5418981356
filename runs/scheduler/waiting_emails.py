"""E-mails about what waits for a person: one for everything that began to wait since the last one.

They are sent by a thread of the scheduler's process, so that a slow mail server delays no job. Any
number of schedulers may run: a row of `WaitingEmail`, claimed by a compare-and-set, decides which
one sends.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import F

from decisions.foundation.infra.outages import Outage
from decisions.foundation.infra.threads import RepeatingThread
from decisions.foundation.presentation.formatting import shorten
from runs.models import Run, WaitingEmail
from runs.queries.waiting import DECISION, Waiting, WaitingRow, list_waiting

EVERY_S = 3.0
STOP_S = 12.0  # how long `stop` waits
MAX_ATTEMPTS = 8
CLAIM = timedelta(seconds=60)  # longer than an attempt, which ends by EMAIL_TIMEOUT
FIRST_DELAY_S = 15.0  # doubled after each attempt
KEPT = timedelta(days=1)
SUBJECT_MAX = 120  # characters
log = logging.getLogger(__name__)


class Mailer:
    """Sends e-mails from `start` to `stop`; does nothing where no e-mail is configured."""

    def __init__(self) -> None:
        outage = Outage(
            log,
            on_failure="no e-mails about what waits: the database is unavailable",
            on_recovery="e-mails about what waits are sent again",
        )
        self._thread = RepeatingThread(
            send_waiting_emails, name="emails", every_s=EVERY_S, outage=outage
        )

    def start(self) -> None:
        """Start the mailer's thread."""
        if settings.WAITING_EMAIL_TO:
            self._thread.start()

    def stop(self) -> None:
        """Send no more, and wait for an e-mail that is being sent."""
        self._thread.stop(STOP_S)


def send_waiting_emails() -> int:
    """Send one e-mail about everything that waits and was in none yet; return about how many.

    Commits. A failed e-mail is tried again, up to MAX_ATTEMPTS times in all.
    """
    now = datetime.now(UTC)
    waiting = list_waiting(out_of_band_only=True)
    claimed = _claim(waiting.rows, now)
    if not claimed:
        return 0
    shown = [row for row in waiting.rows if row.key in claimed]
    mine = WaitingEmail.objects.filter(key__in=claimed)
    try:
        _email(shown, waiting).send()
    except (SMTPException, OSError) as error:
        log.warning("an e-mail about what waits was not accepted: %s", error)
        delay = timedelta(seconds=FIRST_DELAY_S * 2.0 ** max(claimed.values()))
        mine.update(error=shorten(f"{type(error).__name__}: {error}", 200), next_try_at=now + delay)
        return 0
    mine.update(sent_at=datetime.now(UTC), error="")
    return len(shown)


def _claim(rows: Sequence[WaitingRow], now: datetime) -> dict[str, int]:
    """Claim the rows that are due; return their keys with the number of earlier attempts."""
    WaitingEmail.objects.filter(created_at__lt=now - KEPT).exclude(
        key__in=[row.key for row in rows]
    ).delete()
    known = {mail.key: mail for mail in WaitingEmail.objects.filter(key__in=[r.key for r in rows])}
    new = [row.key for row in rows if row.key not in known]
    WaitingEmail.objects.bulk_create(
        (WaitingEmail(key=key, created_at=now, next_try_at=now) for key in new),
        ignore_conflicts=True,
    )
    due = WaitingEmail.objects.filter(
        key__in=[row.key for row in rows],
        sent_at__isnull=True,
        next_try_at__lte=now,
        attempts__lt=MAX_ATTEMPTS,
    )
    return {
        key: attempts
        for key, attempts in list(due.values_list("key", "attempts"))
        if due.filter(key=key, attempts=attempts).update(
            attempts=F("attempts") + 1, next_try_at=now + CLAIM
        )
    }


def _email(rows: Sequence[WaitingRow], waiting: Waiting) -> EmailMessage:
    """Return the e-mail. Its links lead to the admin, where a person signs in: unlike the links of
    webhooks they decide nothing, because e-mails are forwarded.
    """
    first = f"Waiting for a person: {rows[0].title}"
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    lines = [text for row in _with_subjects(rows) for text in (*row, "")]
    inbox = f"{settings.PUBLIC_URL}/admin/decisions/decision/?status=waiting"
    lines.append(f"In all {waiting.count} wait: {inbox}")
    subject = f"[Continuity] {shorten(first, SUBJECT_MAX)}{more}"
    return EmailMessage(subject, "\n".join(lines), to=settings.WAITING_EMAIL_TO)


def _with_subjects(rows: Sequence[WaitingRow]) -> list[list[str]]:
    run_ids = [row.run_id for row in rows if row.run_id]
    runs = Run.objects.only("template_id", "subject").in_bulk(run_ids)
    texts = []
    for row in rows:
        kind = "Confirm or refuse" if row.kind == DECISION else "Answer"
        text = [f"{kind}: {row.title}", row.line]
        run = runs.get(row.run_id or "")
        if run is not None:
            text.append("Run: " + ", ".join(filter(None, (run.template_id, run.subject, run.id))))
        text.append(f"Until: {row.expires_at:%Y-%m-%d %H:%M} UTC" if row.expires_at else "")
        page = "decisions/decision" if row.kind == DECISION else "runs/run"
        text.append(f"{settings.PUBLIC_URL}/admin/{page}/{row.row_id}/change/")
        texts.append([line for line in text if line])
    return texts
