"""The manifest of a page."""

from __future__ import annotations

from holdfast.views.pages.manifest import presentable


def test_values_of_secrets_and_what_servers_keep_for_themselves_are_not_shown() -> None:
    wire = {
        "kind": "Secret",
        "metadata": {
            "name": "a",
            "managedFields": [{}],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "secret", "b": "c"},
        },
        "data": {"password": "aHVudGVyMg=="},
        "stringData": {"token": "hunter2"},
    }
    shown = presentable(wire)
    assert shown["metadata"] == {"name": "a", "annotations": {"b": "c"}}
    assert shown["data"] == {"password": "<hidden, 12 characters>"}
    assert "hunter2" not in str(shown)
