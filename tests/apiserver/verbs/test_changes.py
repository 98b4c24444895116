"""What an update changes: only that is brought into its stored form again, with the same result."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.servers import Api

from holdfast.apiserver.builtins import BUILTINS
from holdfast.apiserver.crd import compiling
from holdfast.apiserver.verbs import changes

POD = next(kind for kind in BUILTINS if kind.kind == "Pod")
SCHEMA = compiling.compiled(POD.schema)


def stored(**spec: Any) -> dict[str, Any]:
    container = {"name": "app", "image": "app:1", "resources": {"limits": {"cpu": "1000m"}}}
    obj = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}
    fill_in(obj)
    return obj


def fill_in(obj: dict[str, Any]) -> None:
    SCHEMA.default(obj)
    POD.settle(obj)


FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "hostNetwork": st.sampled_from([True, False, None]),
        "nodeName": st.sampled_from(["", "n1", "n2"]),
        "restartPolicy": st.sampled_from(["Always", "Never", None]),
        "tolerations": st.sampled_from([[], [{"key": "a", "tolerationSeconds": 0}]]),
        "overhead": st.sampled_from([{}, {"cpu": "1000m"}, {"cpu": 1}]),
        "containers": st.sampled_from([[{"name": "app", "image": "app:2", "ports": [{"containerPort": 80}]}]]),
    },
)


@given(before=FIELDS, after=FIELDS, status=st.sampled_from([{}, {"phase": "Running"}, None]))
def test_an_update_has_the_result_of_filling_in_the_whole_object(before: Any, after: Any, status: Any) -> None:
    old = stored(**before)
    new = copy.deepcopy(old)
    new["spec"] |= after
    if status is not None:
        new["status"] = status
    whole = copy.deepcopy(new)
    fill_in(whole)
    kept = copy.deepcopy(old)
    changes.of_update(POD, new, old, fill_in)
    assert new == whole
    assert old == kept


def test_only_what_changes_is_looked_at() -> None:
    old = stored(nodeName="n1", hostNetwork=True)
    new = copy.deepcopy(old)
    new["spec"]["nodeName"] = "n2"
    seen: list[Any] = []
    changes.of_update(POD, new, old, lambda part: seen.append(copy.deepcopy(part)))
    assert seen == [{"metadata": {"name": "p"}, "spec": {"nodeName": "n2"}}]
    assert new == {**old, "spec": {**old["spec"], "nodeName": "n2"}}


def test_a_value_of_another_type_is_a_change() -> None:
    old = stored(hostNetwork=True)
    new = copy.deepcopy(old)
    new["spec"]["hostNetwork"] = 1  # in Python, 1 equals True
    seen: list[Any] = []
    changes.of_update(POD, new, old, lambda part: seen.append(copy.deepcopy(part["spec"])))
    assert seen == [{"hostNetwork": 1}]


def test_of_a_custom_kind_everything_is_looked_at_since_its_schema_may_have_changed() -> None:
    old = stored(nodeName="n1")
    new = copy.deepcopy(old)
    seen: list[Any] = []
    changes.of_update(replace(POD, custom=True), new, old, lambda part: seen.append(copy.deepcopy(part)))
    assert seen == [old]


def test_a_patch_with_a_value_of_the_wrong_type_is_refused(api: Api) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"hostNetwork": True, "containers": [{"name": "a", "image": "a"}]}}
    api.post("/api/v1/namespaces/default/pods", pod).done()
    refused = api.patch("/api/v1/namespaces/default/pods/p", {"spec": {"hostNetwork": 1}})
    assert refused.refusal == (422, "Invalid")
    assert "cannot unmarshal number into Go struct field PodSpec.spec.hostNetwork of type bool" in refused.message


def test_fields_stay_in_their_order(api: Api) -> None:
    data = {"c": "1", "a": "2", "b": "3"}
    path = "/api/v1/namespaces/default/configmaps"
    before = api.post(path, {"metadata": {"name": "c"}, "immutable": False, "data": data}).ok
    after = api.patch(f"{path}/c", {"data": {"a": "4", "d": "5"}}).ok
    assert list(after) == list(before)
    assert list(after["data"]) == ["c", "a", "b", "d"]


def test_metadata_are_refused_before_the_fields_behind_them() -> None:
    old = stored()
    new = copy.deepcopy(old)
    new["spec"]["nodeName"] = "n1"
    seen: list[str] = []
    changes.of_update(POD, new, old, lambda part: seen.extend(part))
    assert seen == ["metadata", "spec"]


def test_an_autoscaler_of_v1_that_is_updated_as_v2_has_the_form_of_v2(api: Api) -> None:
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}
    path = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
    created = api.post(path.format("v1"), {"metadata": {"name": "h"}, "spec": spec}).ok
    assert created["status"] == {"currentReplicas": 0, "desiredReplicas": 0}
    status = f"{path.format('v2')}/h/status"
    assert api.patch(status, {"status": {"desiredReplicas": 2}}).ok["status"] == {"desiredReplicas": 2}
    shown = api.get(f"{path.format('v1')}/h").ok["status"]
    assert shown == {"currentReplicas": 0, "desiredReplicas": 2}


def test_an_empty_list_with_a_default_gets_it_in_the_same_update(api: Api) -> None:
    path = "/apis/storage.k8s.io/v1/csidrivers"
    api.post(path, {"metadata": {"name": "d"}, "spec": {"volumeLifecycleModes": ["Ephemeral"]}}).done()
    updated = api.patch(f"{path}/d", {"spec": {"volumeLifecycleModes": []}}).ok
    assert updated["spec"]["volumeLifecycleModes"] == ["Persistent"]
