"""What a run kept, read by its own steps."""

from __future__ import annotations

from typing import Any

from artifacts.selectors import get_artifact, read_chunk
from decisions.errors import ArtifactNotFound, Refused
from decisions.identity.principals import Principal, TrustLevel
from runs.models import Run


def read_own_chunk(
    run: Run, *, trust: TrustLevel, artifact_id: str, offset: int, limit: int
) -> dict[str, Any]:
    """Return a chunk of an artifact that this run kept (S0 §3.3), or {error}: a refusal is an
    answer to the step, and none of the engine's business.
    """
    scopes = frozenset({"artifacts:read"})
    reader = Principal(run.principal_id, run.tenant_id, run.workspace_id, scopes, trust)
    try:
        if get_artifact(principal=reader, artifact_id=artifact_id).run_id != run.id:
            raise ArtifactNotFound(f"This run kept no artifact {artifact_id[:64]}.")
        return read_chunk(principal=reader, artifact_id=artifact_id, offset=offset, limit=limit)
    except Refused as refused:
        return {"error": refused.as_dict()}
