"""The conditions of a page."""

from __future__ import annotations

from holdfast.views.pages.conditions import conditions


def test_bad_conditions_come_first() -> None:
    found = conditions(
        {
            "status": {
                "conditions": [
                    {"type": "Ready", "status": "True"},
                    {"type": "Progressing", "status": "False"},
                    {"type": "MinAvailableBreached", "status": "False"},
                    {"type": "Blocked", "status": "True", "reason": "NoRoom", "message": "full"},
                    {"type": "SLASatisfied", "status": "False"},
                    "text",
                    {},
                ]
            }
        }
    )
    assert [(each.type, each.bad) for each in found] == [
        ("Blocked", True),
        ("SLASatisfied", True),
        ("Ready", False),
        ("Progressing", False),
        ("MinAvailableBreached", False),
    ]
