"""The models of the resources that audit rows name."""

from __future__ import annotations

# Resource types whose model has another name; the empty name: without a page.
_MODELS = {
    "session": "browsersession",
    "operator": "",
    "rule": "policyrule",
    "target": "executiontarget",
}


def model_name_of(resource_type: str) -> str:
    """Return the name of the model of a resource, such as `webhookdelivery`; empty: it has none."""
    return _MODELS.get(resource_type, resource_type.replace("_", ""))
