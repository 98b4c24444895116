"""Descriptions: an object and what is around it in, text out."""

from __future__ import annotations

from typing import Any

from holdfast.views.descriptions import Surroundings, describe, tree

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-0",
        "namespace": "team",
        "creationTimestamp": "T1",
        "labels": {"b": "2", "a": "1"},
        "ownerReferences": [{"kind": "StatefulSet", "name": "web"}],
    },
    "spec": {
        "nodeName": "n1",
        "dnsPolicy": "ClusterFirst",
        "initContainers": [{"name": "setup", "image": "setup:1"}],
        "containers": [{"name": "main", "image": "web:1", "args": ["-v", "x"], "resources": {}}],
    },
    "status": {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "reason": "NotReady",
                "message": "one\ntwo",
                "lastTransitionTime": "T2",
            }
        ],
        "initContainerStatuses": [
            {"name": "setup", "ready": True, "state": {"terminated": {"exitCode": 0, "finishedAt": "T1"}}}
        ],
        "containerStatuses": [
            {
                "name": "main",
                "ready": False,
                "restartCount": 2,
                "state": {"waiting": {"reason": "Delayed"}},
                "lastState": {"terminated": {"exitCode": 137, "reason": "Killed"}},
            }
        ],
    },
}
EVENTS = [
    {"type": "Normal", "reason": "Later", "lastTimestamp": "T9", "reportingComponent": "c", "message": "second"},
    {
        "type": "Warning",
        "reason": "First",
        "lastTimestamp": "T3",
        "source": {"component": "c"},
        "count": 2,
        "message": "m",
    },
]


def described(obj: dict[str, Any], **around: Any) -> str:
    return "\n".join(describe(obj, Surroundings(**around), age=lambda when: f"age-of-{when}"))


def test_a_pod_in_trouble() -> None:
    table = ("Claims", [["NAME", "PHASE"], ["data", "Bound"]])
    assert (
        described(POD, events=EVENTS, children=[table])
        == """\
Name:         web-0
Namespace:    team
Kind:         Pod (v1)
Waits for:    container main to be ready (Delayed)
Phase:        Running
Age:          age-of-T1
Labels:       a=1
              b=2
Annotations:  <none>
Owned by:     StatefulSet/web
Spec:
  nodeName: n1
  initContainers:
    - name: setup
      image: setup:1
  containers:
    - name: main
      image: web:1
      args: -v, x
Status:
  podIP: 10.0.0.1
Containers:
  NAME           READY   RESTARTS   STATE                                                SINCE       IMAGE
  setup (init)   true    0          ended with 0                                         age-of-T1   setup:1
  main           false   2          waiting (Delayed), before: ended with 137 (Killed)   <none>      web:1
Conditions:
  TYPE    STATUS   SINCE       REASON     MESSAGE
  Ready   False    age-of-T2   NotReady   one two
Claims:
  NAME   PHASE
  data   Bound
Events:
  TYPE      REASON   AGE              FROM   MESSAGE
  Warning   First    age-of-T3 (x2)   c      m
  Normal    Later    age-of-T9        c      second"""
    )


def test_what_is_as_it_should_be_waits_for_nothing() -> None:
    assert "Waits for" not in described({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})


def test_events_that_are_not_wanted_are_not_told() -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    assert described(obj).endswith("Events:\n  <none>")
    assert "Events" not in described(obj, events=None)


def test_secrets_are_told_by_their_sizes() -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "type": "Opaque",
        "data": {"a": "aHVudGVyMg==", "odd": "x"},
    }
    text = described(secret)
    assert "Type: Opaque\nData:\n  a: 7 bytes\n  odd: 1 bytes\n" in text
    assert "aHVudGVyMg" not in text


def test_values_are_shown_as_a_tree() -> None:
    value = {
        "number": 3,
        "flag": True,
        "words": ["a", "b"],
        "empty": "",
        "text": "one\ntwo",
        "items": [{"name": "x", "deep": {"k": 1}}, {"name": "y"}],
        "lists": [[1, 2]],
    }
    assert tree(value) == [
        "number: 3",
        "flag: true",
        "words: a, b",
        "empty:",
        "text:",
        "  one",
        "  two",
        "items:",
        "  - name: x",
        "    deep:",
        "      k: 1",
        "  - name: y",
        "lists:",
        "  - - 1",
        "    - 2",
    ]
