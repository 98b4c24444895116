"""Events expire, and only Events, counted from their last write and across restarts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.apiserver.servers import CONFIGMAPS, Api, configmap

EVENTS = "/api/v1/namespaces/default/events"


def event(name: str, **fields: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    return {"kind": "Event", "apiVersion": "v1", "metadata": {"name": name}, "involvedObject": about} | fields


def pass_time(api: Api, seconds: float) -> None:
    """Let time pass, and what is due happen."""
    api.run(asyncio.sleep(seconds))


def test_an_event_expires_an_hour_after_its_last_write() -> None:
    api = Api()
    api.post(EVENTS, event("a")).done()
    api.post(CONFIGMAPS, configmap("stays")).done()
    pass_time(api, 1800)
    api.post(EVENTS, event("b")).done()
    api.patch(f"{EVENTS}/a", {"count": 2}).done()
    pass_time(api, 1799)
    assert api.names(EVENTS) == ["a", "b"]
    pass_time(api, 2)
    assert api.names(EVENTS) == ["a", "b"]
    pass_time(api, 1800)
    assert api.names(EVENTS) == []
    assert api.names(CONFIGMAPS) == ["stays"]
    api.close()


def test_a_watch_sees_the_deletion_of_an_expired_event() -> None:
    api = Api(event_seconds=10)
    watch = api.watch(EVENTS)
    api.post(EVENTS, event("a")).done()
    assert watch.next()["type"] == "ADDED"
    gone = watch.next()
    assert (gone["type"], gone["object"]["metadata"]["name"]) == ("DELETED", "a")
    watch.close()
    api.close()


def test_events_of_the_other_group_expire_too() -> None:
    api = Api(event_seconds=10)
    new = {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": "n"},
        "eventTime": "2030-01-01T00:00:00.000000Z",
        "reportingController": "example.com/c",
        "reportingInstance": "i",
        "action": "A",
        "reason": "R",
        "type": "Normal",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
    }
    api.post("/apis/events.k8s.io/v1/namespaces/default/events", new).done()
    pass_time(api, 11)
    assert api.names(EVENTS) == []
    api.close()


def test_the_time_of_an_event_counts_across_a_restart(tmp_path: Path) -> None:
    api = Api(tmp_path)
    api.post(EVENTS, event("old", lastTimestamp="2029-12-31T23:30:00Z")).done()
    api.post(EVENTS, event("new", lastTimestamp="2030-01-01T00:00:00Z")).done()
    api.post(EVENTS, event("ahead", lastTimestamp="2031-01-01T00:00:00Z")).done()
    api.restart()
    pass_time(api, 1802)
    assert api.names(EVENTS) == ["ahead", "new"]
    pass_time(api, 1800)
    assert api.names(EVENTS) == []
    api.close()


def test_thousands_of_events_leave_nothing_behind() -> None:
    api = Api(event_seconds=5)
    for number in range(1_500):
        api.post(EVENTS, event(f"e{number}")).done()
    pass_time(api, 6)
    assert api.server.store.count("/events") == 0
    api.close()
