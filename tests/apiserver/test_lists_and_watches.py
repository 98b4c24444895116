"""Lists and watches: what clients follow a cluster by, and what they may rely on when they come back."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import pytest
from tests.apiserver.servers import CONFIGMAPS, DEFINITIONS, NAMESPACES, PODS, Api, configmap, pod, seen

from holdfast.apiserver.storage.store import Window

A = f"{CONFIGMAPS}/a"


def fill(api: Api, names: str = "abcde") -> None:
    for number, name in enumerate(names):
        labels = {"n": str(number), "odd": str(number % 2)}
        api.post(CONFIGMAPS, configmap(name, metadata={"labels": labels}, data={"k": name})).done()


def compact(api: Api, *, keep: int = 0) -> None:
    api.run(api.server.store.compact(keep=keep))


# Selectors.


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", "abcde"),
        ("labelSelector=odd=1", "bd"),
        ("labelSelector=odd==1", "bd"),
        ("labelSelector=odd!=1", "ace"),
        ("labelSelector=missing!=1", "abcde"),
        ("labelSelector=n in (1, 2)", "bc"),
        ("labelSelector=n notin (1,2)", "ade"),
        ("labelSelector=missing notin (1)", "abcde"),
        ("labelSelector=!odd", ""),
        ("labelSelector=odd", "abcde"),
        ("labelSelector=n>2", "de"),
        ("labelSelector=n<2,odd=0", "a"),
        ("labelSelector=", "abcde"),
        ("fieldSelector=metadata.name=c", "c"),
        ("fieldSelector=metadata.name!=c", "abde"),
        ("fieldSelector=metadata.namespace=default,metadata.name=d", "d"),
        ("fieldSelector=metadata.namespace=other", ""),
        ("labelSelector=odd=0&fieldSelector=metadata.name!=a", "ce"),
        ("limit=0", "abcde"),
        ("limit=-1", "abcde"),
        ("resourceVersion=0", "abcde"),
        ("resourceVersion=1&resourceVersionMatch=NotOlderThan", "abcde"),
    ],
)
def test_a_list_holds_what_the_selectors_ask_for(api: Api, query: str, found: str) -> None:
    fill(api)
    assert api.names(f"{CONFIGMAPS}?{quote(query, safe='=&')}") == list(found)


@pytest.mark.parametrize(
    ("query", "refusal", "words"),
    [
        ("labelSelector=a b c", (400, "BadRequest"), "unable to parse requirement"),
        ("labelSelector=-bad=x", (400, "BadRequest"), "unable to parse requirement"),
        ("labelSelector=a in x", (400, "BadRequest"), "unable to parse requirement"),
        ("labelSelector=n>abc", (400, "BadRequest"), "unable to parse requirement"),
        ("fieldSelector=metadata.name", (400, "BadRequest"), "metadata.name"),
        ("fieldSelector=data.k=a", (400, "BadRequest"), '"data.k" is not a known field selector'),
        ("limit=abc", (400, "BadRequest"), 'parsing "abc": invalid syntax'),
        ("limit=1_0", (400, "BadRequest"), "invalid syntax"),
        ("limit=99999999999999999999", (400, "BadRequest"), "value out of range"),
        ("continue=garbage", (400, "BadRequest"), "continue"),
        ("resourceVersion=abc", (400, "BadRequest"), "invalid resource version"),
        ("resourceVersion=-1", (400, "BadRequest"), "invalid resource version"),
        ("resourceVersion=99999999999999999999", (400, "BadRequest"), "value out of range"),
        ("resourceVersion=" + "9" * 5000, (400, "BadRequest"), "value out of range"),
        ("resourceVersionMatch=Exact", (422, "Invalid"), "unless resourceVersion is provided"),
        ("resourceVersion=5&resourceVersionMatch=Never", (422, "Invalid"), 'Unsupported value: "Never"'),
        ("resourceVersion=0&resourceVersionMatch=Exact", (422, "Invalid"), 'for resourceVersion "0"'),
        ("resourceVersion=1&continue=x", (400, "BadRequest"), "not allowed when using continue"),
        ("sendInitialEvents=true", (422, "Invalid"), "sendInitialEvents is forbidden for list"),
        ("resourceVersion=1&resourceVersionMatch=Exact&continue=x", (422, "Invalid"), "when continue is provided"),
    ],
)
def test_a_list_that_makes_no_sense_says_why(api: Api, query: str, refusal: tuple[int, str], words: str) -> None:
    answer = api.get(f"{CONFIGMAPS}?{quote(query, safe='=&')}")
    assert answer.refusal == refusal
    assert words in answer.message


@pytest.mark.parametrize("target", [CONFIGMAPS, f"{CONFIGMAPS}/a"])
def test_a_version_that_is_not_there_yet_is_worth_waiting_for(api: Api, target: str) -> None:
    fill(api, "a")
    answer = api.get(f"{target}?resourceVersion=100000")
    assert answer.refusal == (504, "Timeout")
    assert answer.causes == [("", "ResourceVersionTooLarge")]
    assert answer.headers["Retry-After"] == "1"


def test_pods_are_selected_by_their_own_fields(api: Api) -> None:
    for name, node in (("a", "one"), ("b", "two"), ("c", "")):
        api.post(PODS, pod(name, **({"nodeName": node} if node else {}))).done()
    api.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}}).done()
    assert api.names(f"{PODS}?fieldSelector=spec.nodeName=two") == ["b"]
    assert api.names(f"{PODS}?fieldSelector=spec.nodeName=") == ["c"]
    assert api.names(f"{PODS}?fieldSelector=status.phase!=Running") == ["b", "c"]
    assert api.names(f"{PODS}?fieldSelector=spec.restartPolicy=Always,metadata.name=a") == ["a"]


def test_a_list_goes_across_namespaces_in_the_order_of_their_names(api: Api) -> None:
    for namespace in ("two", "one"):
        api.post(NAMESPACES, {"metadata": {"name": namespace}}).done()
        for name in ("b", "a"):
            api.post(f"{NAMESPACES}/{namespace}/configmaps", configmap(name)).done()
    items = api.get("/api/v1/configmaps").ok["items"]
    found = [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in items]
    assert found == [("one", "a"), ("one", "b"), ("two", "a"), ("two", "b")]


def test_an_empty_list_has_no_items_but_a_version(api: Api) -> None:
    empty = api.get("/api/v1/namespaces/nowhere/configmaps").ok
    assert (empty["kind"], empty["apiVersion"], empty["items"]) == ("ConfigMapList", "v1", [])
    assert empty["metadata"] == {"resourceVersion": str(api.server.store.revision)}


# Pages.


def pages(api: Api, target: str) -> list[Any]:
    """Follow a list to its end."""
    found, token = [], ""
    while True:
        page = api.get(target + (f"&continue={token}" if token else "")).ok
        found.append(page)
        token = page["metadata"].get("continue", "")
        if not token:
            return found


def shown(page: Any) -> str:
    return "".join(each["metadata"]["name"] for each in page["items"])


def test_pages_hold_each_object_once_and_say_what_is_left(api: Api) -> None:
    fill(api)
    found = pages(api, f"{CONFIGMAPS}?limit=2")
    assert [shown(page) for page in found] == ["ab", "cd", "e"]
    assert [page["metadata"].get("remainingItemCount") for page in found] == [3, 1, None]
    selected = pages(api, f"{CONFIGMAPS}?limit=1&labelSelector=odd%3D1")
    assert [shown(page) for page in selected] == ["b", "d"]
    assert all("remainingItemCount" not in page["metadata"] for page in selected)


def test_pages_show_one_moment_whatever_is_written_meanwhile(api: Api) -> None:
    fill(api)
    first = api.get(f"{CONFIGMAPS}?limit=2").ok
    api.delete(f"{CONFIGMAPS}/d").done()
    api.post(CONFIGMAPS, configmap("bb")).done()
    api.patch(f"{CONFIGMAPS}/e", {"data": {"k": "new"}}).done()
    rest = api.get(f"{CONFIGMAPS}?limit=10&continue={first['metadata']['continue']}").ok
    assert shown(rest) == "cde"
    assert rest["items"][-1]["data"] == {"k": "e"}
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_a_token_whose_moment_is_forgotten_is_answered_with_one_that_goes_on(api: Api) -> None:
    fill(api)
    first = api.get(f"{CONFIGMAPS}?limit=2").ok
    api.delete(f"{CONFIGMAPS}/d").done()
    compact(api)
    expired = api.get(f"{CONFIGMAPS}?limit=2&continue={first['metadata']['continue']}")
    assert expired.refusal == (410, "Expired")
    assert "The provided continue parameter is too old" in expired.message
    rest = api.get(f"{CONFIGMAPS}?limit=2&continue={expired.body['metadata']['continue']}").ok
    assert shown(rest) == "ce"


def test_a_token_outlives_compaction_while_nothing_of_its_kind_changed(api: Api) -> None:
    fill(api)
    first = api.get(f"{CONFIGMAPS}?limit=2").ok
    api.post(PODS, pod("p")).done()
    compact(api)
    assert shown(api.get(f"{CONFIGMAPS}?continue={first['metadata']['continue']}").ok) == "cde"


def test_a_list_can_be_of_an_exact_version_while_that_is_kept(api: Api) -> None:
    fill(api, "ab")
    then = api.get(CONFIGMAPS).ok["metadata"]["resourceVersion"]
    api.delete(A).done()
    exact = f"{CONFIGMAPS}?resourceVersion={then}&resourceVersionMatch=Exact"
    assert api.names(exact) == ["a", "b"]
    assert api.names(f"{CONFIGMAPS}?resourceVersion={then}&limit=5") == ["a", "b"]
    assert api.names(f"{CONFIGMAPS}?resourceVersion={then}&resourceVersionMatch=NotOlderThan") == ["b"]
    compact(api)
    answer = api.get(exact)
    assert answer.refusal == (410, "Expired")
    assert answer.message == "The resourceVersion for the provided list is too old."


# Forms.


TABLE = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
PARTIAL = {"accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
PARTIAL_LIST = {"accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}


def test_a_list_comes_as_a_table(api: Api) -> None:
    fill(api, "ab")
    table = api.get(f"{CONFIGMAPS}?limit=1", headers=TABLE).ok
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert [row["cells"] for row in table["rows"]] == [["a", 1, "0s"]]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert table["metadata"]["continue"]


def test_objects_come_as_metadata_alone(api: Api) -> None:
    fill(api, "a")
    one = api.get(A, headers=PARTIAL).ok
    assert (one["kind"], "data" in one, one["metadata"]["labels"]["n"]) == ("PartialObjectMetadata", False, "0")
    many = api.get(CONFIGMAPS, headers=PARTIAL_LIST).ok
    assert (many["kind"], [set(item) & {"data"} for item in many["items"]]) == ("PartialObjectMetadataList", [set()])


def test_objects_come_as_yaml(api: Api) -> None:
    fill(api, "a")
    answer = api.get(A, headers={"accept": "application/yaml"})
    assert answer.content_type == "application/yaml"
    assert b"kind: ConfigMap" in answer.raw


def test_an_unknown_form_is_not_acceptable(api: Api) -> None:
    assert api.get(CONFIGMAPS, headers={"accept": "text/plain"}).refusal == (406, "NotAcceptable")


def test_watched_tables_say_their_columns_once(api: Api) -> None:
    fill(api, "ab")
    events = api.watch(f"{CONFIGMAPS}?timeoutSeconds=1", headers=TABLE).rest()
    assert [event["object"]["rows"][0]["cells"][0] for event in events] == ["a", "b"]
    assert [bool(event["object"].get("columnDefinitions")) for event in events] == [True, False]


# Watches.


def test_a_watch_tells_what_happens_after_its_version(api: Api) -> None:
    version = api.post(CONFIGMAPS, configmap("a")).version
    watch = api.watch(f"{CONFIGMAPS}?resourceVersion={version}&timeoutSeconds=5")
    api.post(CONFIGMAPS, configmap("b")).done()
    api.patch(A, {"data": {"k": "1"}}).done()
    api.patch(A, {"data": {"k": "1"}}).done()  # changes nothing
    api.post("/api/v1/namespaces/kube-system/configmaps", configmap("elsewhere")).done()
    api.delete(A).done()
    events = watch.rest()
    assert seen(events) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))
    assert events[-1]["object"]["data"] == {"k": "1"}


def test_a_watch_resumes_where_it_stopped(api: Api) -> None:
    fill(api, "abc")
    watch = api.watch(CONFIGMAPS)
    first = watch.next()
    watch.close()
    version = first["object"]["metadata"]["resourceVersion"]
    assert seen(api.watch(f"{CONFIGMAPS}?resourceVersion={version}&timeoutSeconds=1").rest()) == [
        ("ADDED", "b"),
        ("ADDED", "c"),
    ]


@pytest.mark.parametrize("version", ["", "&resourceVersion=0"])
def test_without_a_version_a_watch_begins_with_what_is_there(api: Api, version: str) -> None:
    fill(api, "ab")
    watch = api.watch(f"{CONFIGMAPS}?timeoutSeconds=5{version}")
    api.post(CONFIGMAPS, configmap("c")).done()
    assert seen(watch.rest()) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]


def test_objects_enter_and_leave_a_selector(api: Api) -> None:
    version = api.get(CONFIGMAPS).ok["metadata"]["resourceVersion"]
    watch = api.watch(f"{CONFIGMAPS}?resourceVersion={version}&labelSelector=w%3Dy&timeoutSeconds=5")
    api.post(CONFIGMAPS, configmap("a", metadata={"labels": {"w": "y"}})).done()
    api.patch(A, {"data": {"k": "1"}}).done()
    api.patch(A, {"metadata": {"labels": {"w": "n"}}}).done()
    left = api.server.store.revision
    api.patch(A, {"data": {"k": "2"}}).done()
    api.patch(A, {"metadata": {"labels": {"w": "y"}}}).done()
    api.delete(A).done()
    events = watch.rest()
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    gone = events[2]["object"]
    assert (gone["metadata"]["labels"], gone["data"]) == ({"w": "y"}, {"k": "1"})
    assert gone["metadata"]["resourceVersion"] == str(left)


def test_pods_are_watched_by_their_node(api: Api) -> None:
    watch = api.watch(f"{PODS}?fieldSelector=spec.nodeName%3Done&timeoutSeconds=5")
    api.post(PODS, pod("p")).done()
    api.post(f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "one"}}).done()
    assert seen(watch.rest()) == [("ADDED", "p")]


@pytest.mark.parametrize(
    "target",
    [
        f"{CONFIGMAPS}?fieldSelector=metadata.name%3Db",
        "/api/v1/watch/namespaces/default/configmaps/b?",
    ],
)
def test_one_object_is_watched_by_its_name(api: Api, target: str) -> None:
    fill(api, "abc")
    assert seen(api.watch(f"{target}&timeoutSeconds=1").rest()) == [("ADDED", "b")]


def test_the_old_paths_of_watches_are_for_reading_only(api: Api) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = api.ask(method, "/api/v1/watch/namespaces/default/configmaps", {})
        assert answer.refusal == (405, "MethodNotAllowed")


def test_a_list_and_a_watch_after_it_miss_and_repeat_nothing(api: Api) -> None:
    fill(api, "ab")
    listed = api.get(CONFIGMAPS).ok
    api.post(CONFIGMAPS, configmap("c")).done()
    version = listed["metadata"]["resourceVersion"]
    assert seen(api.watch(f"{CONFIGMAPS}?resourceVersion={version}&timeoutSeconds=1").rest()) == [("ADDED", "c")]


def test_a_streamed_list_ends_with_a_bookmark_that_says_so(api: Api) -> None:
    fill(api, "ab")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1"
    watch = api.watch(f"{CONFIGMAPS}?{query}")
    begin = [watch.next() for _ in range(3)]
    api.post(CONFIGMAPS, configmap("c")).done()
    assert seen(begin) == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")]
    assert begin[2]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert seen(watch.rest())[0] == ("ADDED", "c")


@pytest.mark.parametrize(("accept", "kind"), [(PARTIAL, "PartialObjectMetadata"), (TABLE, "Table")])
@pytest.mark.parametrize("path", [CONFIGMAPS, PODS, "/apis/storage.k8s.io/v1/storageclasses", DEFINITIONS])
def test_a_bookmark_has_the_form_that_the_client_asked_for(
    api: Api, path: str, accept: dict[str, str], kind: str
) -> None:
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1"
    event = api.watch(f"{path}?{query}", headers=accept).next()
    assert (event["type"], event["object"]["kind"], event["object"]["apiVersion"]) == (
        "BOOKMARK",
        kind,
        "meta.k8s.io/v1",
    )
    assert event["object"]["metadata"]["resourceVersion"] == str(api.server.store.revision)
    marked = event["object"] if kind != "Table" else event["object"]["rows"][0]["object"]
    assert marked["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_without_initial_events_a_watch_begins_now(api: Api) -> None:
    fill(api, "ab")
    watch = api.watch(f"{CONFIGMAPS}?sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=1")
    api.post(CONFIGMAPS, configmap("c")).done()
    assert seen(watch.rest()) == [("ADDED", "c")]


def test_bookmarks_come_where_asked_while_nothing_happens(api: Api) -> None:
    fill(api, "a")
    watch = api.watch(f"{CONFIGMAPS}?allowWatchBookmarks=true&timeoutSeconds=100")
    assert seen([watch.next()]) == [("ADDED", "a")]
    api.post(PODS, pod("p")).done()
    events = watch.rest()
    assert {event["type"] for event in events} == {"BOOKMARK"}
    assert 3 <= len(events) <= 5
    assert events[-1]["object"]["metadata"]["resourceVersion"] == str(api.server.store.revision)
    assert (events[0]["object"]["kind"], events[0]["object"]["apiVersion"]) == ("ConfigMap", "v1")
    assert seen(api.watch(f"{CONFIGMAPS}?timeoutSeconds=100").rest()) == [("ADDED", "a")]


def test_bookmarks_come_while_only_others_are_told_something(api: Api) -> None:
    watch = api.watch(f"{CONFIGMAPS}?labelSelector=none&allowWatchBookmarks=true&timeoutSeconds=300")
    api.post(CONFIGMAPS, configmap("a")).done()

    async def busy() -> bytes:
        reading = asyncio.create_task(watch.chunk())
        for number in range(6):
            await asyncio.sleep(10)
            await api.answer("PUT", A, configmap("a", data={"k": str(number)}))
        return await reading

    assert b'"type":"BOOKMARK"' in api.run(busy())
    watch.close()


def test_a_version_that_is_forgotten_ends_a_watch_with_an_error(api: Api) -> None:
    version = api.post(CONFIGMAPS, configmap("a")).version
    api.patch(A, {"data": {"k": "1"}}).done()
    compact(api)
    (event,) = api.watch(f"{CONFIGMAPS}?resourceVersion={version}").rest()
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"].startswith(f"too old resource version: {version} (")


def test_a_version_of_another_history_is_to_be_forgotten_too(api: Api) -> None:
    (event,) = api.watch(f"{CONFIGMAPS}?resourceVersion=100000").rest()
    assert (event["type"], event["object"]["reason"]) == ("ERROR", "Expired")


def test_a_watch_that_falls_behind_is_cut_off() -> None:
    api = Api()
    api.server.store._history.window = Window(events=20)
    watch = api.watch(CONFIGMAPS)
    for number in range(40):
        api.post(CONFIGMAPS, configmap(f"c{number}")).done()
    events = watch.rest()
    assert [event["type"] for event in events] == ["ERROR"]
    assert events[0]["object"]["code"] == 410
    api.close()


@pytest.mark.parametrize(
    ("query", "refusal"),
    [
        ("resourceVersion=abc", (500, "")),
        ("timeoutSeconds=x", (400, "BadRequest")),
        ("sendInitialEvents=true", (422, "Invalid")),
        ("resourceVersionMatch=NotOlderThan", (422, "Invalid")),
        ("resourceVersionMatch=Exact&sendInitialEvents=true", (422, "Invalid")),
        ("labelSelector=a b c", (400, "BadRequest")),
        ("fieldSelector=spec.no=1", (400, "BadRequest")),
    ],
)
def test_a_watch_that_makes_no_sense_is_no_stream(api: Api, query: str, refusal: tuple[int, str]) -> None:
    assert api.get(f"{CONFIGMAPS}?watch=1&{quote(query, safe='=&')}").refusal == refusal


@pytest.mark.parametrize(
    ("flag", "streams"), [("1", True), ("true", True), ("yes", True), ("0", False), ("false", False), ("False", False)]
)
def test_a_watch_is_asked_for_by_any_value_that_is_not_false(api: Api, flag: str, streams: bool) -> None:
    answer = api.get(f"{CONFIGMAPS}?watch={flag}&timeoutSeconds=1")
    assert (answer.raw == b"") is streams


def test_watches_end_when_the_server_does(api: Api) -> None:
    watch = api.watch(CONFIGMAPS)
    api.run(api.server.store.close())
    assert watch.rest() == []


def test_one_event_is_seen_by_all_who_watch(api: Api) -> None:
    watches = [api.watch(f"{CONFIGMAPS}?timeoutSeconds=1") for _ in range(20)]
    api.post(CONFIGMAPS, configmap("a")).done()
    assert all(seen(watch.rest()) == [("ADDED", "a")] for watch in watches)


def test_definitions_are_watched_as_they_become_served(api: Api) -> None:
    watch = api.watch(f"{DEFINITIONS}?timeoutSeconds=1")
    definition = {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    api.post(DEFINITIONS, definition).done()
    events = watch.rest()
    assert seen(events)[:2] == [("ADDED", "things.example.com"), ("MODIFIED", "things.example.com")]
    conditions = {each["type"]: each["status"] for each in events[-1]["object"]["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
