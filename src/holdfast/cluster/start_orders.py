"""Pods that start after others: held back until enough of those are ready.

    holdfast.dev/starts-after: workers-0-leader:1,workers-0-cache:2

says of which PodCliques (by the label ``grove.io/podclique`` of their pods, in the
same namespace) how many pods must be ready.  On other clusters an init container
waits (``holdfast operator wait-for``); here the node does, by ending that container no
earlier.  What has started is not stopped again.

Pure but for the view.  This module must not know what a node does with a pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.resources import PODS
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime.controllers import Index, View

ANNOTATION: Final = "holdfast.dev/starts-after"
LABEL: Final = "grove.io/podclique"
WAITER: Final = ("holdfast", "operator", "wait-for")
"""The command of the init container that waits."""


def waits_for(pod: Object) -> Iterator[tuple[str, int]]:
    """The PodCliques that a pod starts after, and how many of their pods must be ready; what is no number is none."""
    for part in filter(None, pod.meta.annotations.get(ANNOTATION, "").split(",")):
        clique, _, number = part.rpartition(":")
        if clique and number.isascii() and number.isdecimal() and len(number) < 10:
            yield clique, int(number)


def is_held(view: View, pod: Object) -> bool:
    """Whether a pod has to wait for others."""
    return bool(lacking(view, pod))


def lacking(view: View, pod: Object) -> dict[str, int]:
    """The PodCliques that a pod still waits for, and how many of their pods are not ready yet."""
    short = {clique: number - _ready(view, pod.meta.namespace, clique) for clique, number in waits_for(pod)}
    return {clique: number for clique, number in short.items() if number > 0}


def _ready(view: View, namespace: str, clique: str) -> int:
    chosen = LabelSelector.from_object({"matchLabels": {LABEL: clique}})
    found = map(Pod.of, view.list(PODS, namespace=namespace, labels=chosen))
    return sum(pod.active and pod.ready for pod in found)


def those_who_wait(pod: Object, view: View) -> Iterable[Key]:
    """The pods that wait for pods of the same PodClique."""
    clique = pod.meta.labels.get(LABEL)
    if clique is None:
        return ()
    return [each.key for each in view.indexed(PODS, BY_CLIQUE.name, f"{pod.meta.namespace}/{clique}")]


def _awaited(pod: Object) -> Iterable[str]:
    if ANNOTATION not in pod.meta.annotations or Pod.of(pod).status.phase != "Pending":
        return ()
    return [f"{pod.meta.namespace}/{clique}" for clique, _ in waits_for(pod)]


BY_CLIQUE: Final = Index(resource=PODS, name="starts-after", values=_awaited)
"""Pods that have not started, by what they start after."""
