"""What the task pages show where no model is configured: before a message, and after a failed
run."""

from __future__ import annotations

from typing import Any

from django.test import Client

from runners.llm.base import LlmSettings
from runs.models import Run, Task
from runs.worker.worker import WorkerProcess

NO_MODEL = "No model is set"


def test_the_missing_model_is_reported_before_the_first_message(
    superuser_client: Client, settings: Any
) -> None:
    settings.LLM = LlmSettings()
    assert NO_MODEL in superuser_client.get("/admin/runs/task/").content.decode()
    settings.LLM = LlmSettings("openai", "some-model")
    assert NO_MODEL not in superuser_client.get("/admin/runs/task/").content.decode()


def test_a_failure_explains_what_to_do(
    superuser_client: Client, settings: Any, worker: WorkerProcess
) -> None:
    settings.LLM = LlmSettings()
    superuser_client.post("/admin/runs/task/new/", {"content": "Find it."})
    worker.work()
    assert (Run.objects.get().status, Task.objects.get().status) == ("failed", "error")
    page = superuser_client.get(
        f"/admin/runs/task/{Task.objects.get().id}/change/"
    ).content.decode()
    assert NO_MODEL in page
    assert "CONTINUITY_LLM_MODEL is not set" in page
    assert "manage.py doctor` reports what is wrong" in page
