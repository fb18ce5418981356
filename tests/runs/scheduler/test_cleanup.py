"""Cleanup deletes all expired rows, even more than one batch, and no others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from artifacts.models import ArtifactUpload
from artifacts.uploads import delete_old_uploads
from decisions.chat.answers import delete_expired_answers
from decisions.chat.idle_conversations import delete_idle_conversations
from decisions.foundation.infra.batches import BATCH_SIZE
from decisions.identity.principals import Principal
from decisions.models import ChatAnswer, Conversation

ROWS = 2 * BATCH_SIZE + 1
pytestmark = pytest.mark.usefixtures("principal")


def ago(**time: int) -> datetime:
    return datetime.now(UTC) - timedelta(**time)


def test_all_expired_answers_are_deleted_at_once_and_no_others() -> None:
    old, young = ago(hours=25), ago(hours=23)
    ChatAnswer.objects.bulk_create(
        ChatAnswer(
            workspace_id="w",
            user_id="u",
            idempotency_key=str(number),
            created_at=old if number else young,
        )
        for number in range(ROWS + 1)
    )
    assert (delete_expired_answers(), delete_expired_answers()) == (ROWS, 0)
    assert ChatAnswer.objects.get().idempotency_key == "0"


def test_all_abandoned_uploads_are_deleted_at_once_and_no_others(principal: Principal) -> None:
    workspace = {"tenant_id": principal.tenant_id, "workspace_id": principal.workspace_id}
    ArtifactUpload.objects.bulk_create(
        ArtifactUpload(
            id=f"upl_{number}",
            **workspace,
            principal_id="p",
            name="n",
            mime_type="a/b",
            sha256="0" * 64,
            size_bytes=1,
            created_at=ago(hours=3),
            expires_at=ago(hours=2) if number else ago(minutes=5),
        )
        for number in range(ROWS + 1)
    )
    assert (delete_old_uploads(), delete_old_uploads()) == (ROWS, 0)
    assert ArtifactUpload.objects.get().id == "upl_0"


def test_idle_conversations_are_deleted_and_active_ones_are_not() -> None:
    Conversation.objects.bulk_create(
        Conversation(
            tenant_id="t",
            workspace_id="w",
            user_id="u",
            session_id=str(number),
            created_at=ago(days=90),
            updated_at=ago(days=31 if number else 29),
        )
        for number in range(ROWS + 1)
    )
    assert (delete_idle_conversations(), delete_idle_conversations()) == (ROWS, 0)
    assert Conversation.objects.get().session_id == "0"
