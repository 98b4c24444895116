"""Who may do what: rules, bindings, aggregation, escalation, and the words of a refusal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.apiserver.auth import reviews
from holdfast.apiserver.auth.default_roles import bootstrap_objects
from holdfast.apiserver.auth.escalation import check_escalation
from holdfast.apiserver.auth.rbac import GROUP, KINDS, Authorizer, Decision, Held, Policy, Rule, aggregated, forbidden
from holdfast.apiserver.resources import Object
from holdfast.apiserver.routes import RequestInfo, parse
from holdfast.meta.errors import BadRequest, Forbidden, Invalid
from holdfast.meta.exchange import ANONYMOUS, User, encode

JANE = User("jane", ("dev", "system:authenticated"))
MASTER = User("root", ("system:masters",))
ROBOT = User("system:serviceaccount:ns:robot", ("system:serviceaccounts", "system:serviceaccounts:ns"))


def role(name: str, *rules: dict[str, Any], namespace: str = "", **more: Any) -> Object:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"kind": "Role" if namespace else "ClusterRole", "metadata": metadata, "rules": list(rules)} | more


def binding(name: str, to: str, *subjects: dict[str, str], namespace: str = "") -> Object:
    """``to`` is ``Role/x`` or ``ClusterRole/x``."""
    kind, _, target = to.partition("/")
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": target},
        "subjects": list(subjects),
    }


def rule(verbs: str, resources: str, *, groups: str = "", names: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {
        "verbs": verbs.split(),
        "apiGroups": groups.split() or [""],
        "resources": resources.split(),
    }
    return found | ({"resourceNames": names.split()} if names else {})


USER = {"kind": "User", "name": "jane"}
DEV = {"kind": "Group", "name": "dev"}
ACCOUNT = {"kind": "ServiceAccount", "name": "robot", "namespace": "ns"}


def asks(method: str, path: str) -> RequestInfo:
    path, _, query = path.partition("?")
    name, _, value = query.partition("=")
    return parse(method, path, {name: (value,)} if query else {})


PODS = "/api/v1/namespaces/ns/pods"
RULES = [
    (rule("get", "pods"), "GET", PODS + "/a", True),
    (rule("get", "pods"), "GET", PODS, False),
    (rule("list", "pods"), "GET", PODS, True),
    (rule("watch", "pods"), "GET", PODS + "?watch=1", True),
    (rule("*", "pods"), "DELETE", PODS, True),
    (rule("get", "*"), "GET", PODS + "/a/log", True),
    (rule("get", "pods"), "GET", PODS + "/a/log", False),
    (rule("get", "pods/log"), "GET", PODS + "/a/log", True),
    (rule("get", "pods/log"), "GET", PODS + "/a", False),
    (rule("get", "*/log"), "GET", PODS + "/a/log", True),
    (rule("get", "*/log"), "GET", PODS + "/a", False),
    (rule("get", "pods/*"), "GET", PODS + "/a/log", False),
    (rule("get", "pods", names="a b"), "GET", PODS + "/b", True),
    (rule("get", "pods", names="a b"), "GET", PODS + "/c", False),
    (rule("list", "pods", names="a"), "GET", PODS, False),
    (rule("list", "pods", names="a"), "GET", PODS + "?fieldSelector=metadata.name=a", True),
    (rule("create", "pods", names="a"), "POST", PODS, False),
    (rule("get", "deployments"), "GET", "/apis/apps/v1/namespaces/ns/deployments/d", False),
    (rule("get", "deployments", groups="apps"), "GET", "/apis/apps/v1/namespaces/ns/deployments/d", True),
    (rule("get", "deployments", groups="*"), "GET", "/apis/apps/v1/namespaces/ns/deployments/d", True),
    (rule("*", "*", groups="*"), "GET", "/healthz", False),
    ({"verbs": ["get"], "nonResourceURLs": ["/api"]}, "GET", "/api", True),
    ({"verbs": ["get"], "nonResourceURLs": ["/api"]}, "GET", "/api/v1", False),
    ({"verbs": ["get"], "nonResourceURLs": ["/api/*"]}, "GET", "/api/v1", True),
    ({"verbs": ["get"], "nonResourceURLs": ["/api/*"]}, "POST", "/api/v1", False),
    ({"verbs": ["*"], "nonResourceURLs": ["*"]}, "POST", "/anything", True),
    ({"verbs": ["*"], "nonResourceURLs": ["*"]}, "GET", PODS, False),
    ({}, "GET", PODS, False),
]


@pytest.mark.parametrize(("given_rule", "method", "path", "expected"), RULES)
def test_a_rule_allows_what_it_says(given_rule: dict[str, Any], method: str, path: str, expected: bool) -> None:
    policy = Policy([role("r", given_rule), binding("b", "ClusterRole/r", USER)])
    assert policy.allowed(JANE, asks(method, path)).allowed is expected


BINDINGS = [
    (binding("b", "ClusterRole/r", USER), JANE, 'ClusterRoleBinding "b" of ClusterRole "r" to User "jane"'),
    (binding("b", "ClusterRole/r", DEV), JANE, 'ClusterRoleBinding "b" of ClusterRole "r" to Group "dev"'),
    (
        binding("b", "ClusterRole/r", USER, namespace="ns"),
        JANE,
        'RoleBinding "b/ns" of ClusterRole "r" to User "jane"',
    ),
    (binding("b", "Role/r", USER, namespace="ns"), JANE, 'RoleBinding "b/ns" of Role "r" to User "jane"'),
    (
        binding("b", "ClusterRole/r", ACCOUNT),
        ROBOT,
        'ClusterRoleBinding "b" of ClusterRole "r" to ServiceAccount "robot/ns"',
    ),
]


@pytest.mark.parametrize(("bound", "user", "why"), BINDINGS)
def test_a_binding_gives_a_role_to_its_subjects_and_is_named(bound: Object, user: User, why: str) -> None:
    pods = rule("get", "pods")
    policy = Policy([role("r", pods), role("r", pods, namespace="ns"), bound])
    assert policy.allowed(user, asks("GET", PODS + "/a")) == Decision(True, f"RBAC: allowed by {why}")
    assert not policy.allowed(User("john"), asks("GET", PODS + "/a")).allowed


def test_a_role_binding_gives_nothing_outside_its_namespace() -> None:
    policy = Policy([role("r", rule("*", "*", groups="*")), binding("b", "ClusterRole/r", USER, namespace="ns")])
    assert policy.allowed(JANE, asks("GET", PODS)).allowed
    for path in ("/api/v1/pods", "/api/v1/namespaces/other/pods", "/api/v1/nodes", "/metrics"):
        assert not policy.allowed(JANE, asks("GET", path)).allowed


def test_masters_are_above_all_rules() -> None:
    assert Policy([]).allowed(MASTER, asks("DELETE", PODS)) == Decision(True)


def test_a_binding_to_a_role_that_is_not_there_is_told() -> None:
    policy = Policy([binding("b", "ClusterRole/gone", USER), binding("c", "Role/lost", USER, namespace="ns")])
    decision = policy.allowed(JANE, asks("GET", PODS))
    lost = [f'clusterrole.{GROUP} "gone" not found', f'role.{GROUP} "lost" not found']
    assert decision == Decision(False, f"RBAC: [{', '.join(lost)}]")


REFUSALS = [
    (
        "GET",
        "/api/v1/namespaces/default/configmaps",
        (
            'configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" '
            'in the namespace "default"'
        ),
        {"kind": "configmaps"},
    ),
    (
        "GET",
        "/api/v1/nodes",
        'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope',
        {"kind": "nodes"},
    ),
    (
        "DELETE",
        "/apis/apps/v1/namespaces/ns/deployments/web",
        (
            'deployments.apps "web" is forbidden: User "jane" cannot delete resource "deployments" in API group "apps" '
            'in the namespace "ns"'
        ),
        {"kind": "deployments", "group": "apps", "name": "web"},
    ),
    (
        "GET",
        PODS + "/a/log",
        'pods "a" is forbidden: User "jane" cannot get resource "pods/log" in API group "" in the namespace "ns"',
        {"kind": "pods", "name": "a"},
    ),
    ("GET", "/metrics", 'forbidden: User "jane" cannot get path "/metrics"', {}),
]


@pytest.mark.parametrize(("method", "path", "message", "details"), REFUSALS)
def test_a_refusal_is_worded_as_kubernetes_words_it(
    method: str, path: str, message: str, details: dict[str, str]
) -> None:
    status = forbidden(JANE, asks(method, path)).to_status()
    assert (status["code"], status["reason"]) == (403, "Forbidden")
    assert status["message"] == message
    assert status["details"] == details


@dataclass(frozen=True)
class Record:
    namespace: str
    name: str
    rv: int
    value: bytes


class Objects:
    """Objects that change, and an authorizer over them."""

    def __init__(self, *objects: Object) -> None:
        self.revision = 0
        self.listed = 0
        self.records: dict[tuple[str, str, str], Record] = {}
        for obj in objects:
            self.put(obj)
        self.authorizer = Authorizer(self)

    def put(self, obj: Object) -> None:
        self.revision += 1
        resource = f"{GROUP}/{obj['kind'].lower()}s"
        namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        self.records[resource, namespace, name] = Record(namespace, name, self.revision, encode(obj))

    def remove(self, kind: str, name: str, *, namespace: str = "") -> None:
        self.revision += 1
        del self.records[f"{GROUP}/{kind.lower()}s", namespace, name]

    def changed_at(self, resource: str) -> int:
        return self.revision

    def list(self, resource: str) -> Sequence[Record]:
        self.listed += 1
        return [record for key, record in self.records.items() if key[0] == resource]


def test_the_policy_is_updated_only_when_objects_changed() -> None:
    world = Objects(role("r", rule("list", "pods")))
    for _ in range(3):
        assert not world.authorizer.allowed(JANE, asks("GET", PODS)).allowed
    assert world.listed == len(KINDS)
    world.put(binding("b", "ClusterRole/r", USER))
    for _ in range(3):
        world.authorizer.check(JANE, asks("GET", PODS))
    assert world.listed == 2 * len(KINDS)
    with pytest.raises(Forbidden):
        world.authorizer.check(User("john"), asks("GET", PODS))


def test_a_change_of_one_binding_reads_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [binding(f"b{n}", "ClusterRole/r", {"kind": "User", "name": f"user{n}"}) for n in range(2_000)]
    world = Objects(role("r", rule("list", "pods")), *many)
    world.authorizer.check(User("user7"), asks("GET", PODS))
    read: list[Object] = []
    put = Policy.put
    monkeypatch.setattr(Policy, "put", lambda policy, obj: (read.append(obj), put(policy, obj)))
    changed = binding("b7", "ClusterRole/r", USER)
    world.put(changed)
    world.authorizer.check(JANE, asks("GET", PODS))
    assert read == [changed]
    assert not world.authorizer.allowed(User("user7"), asks("GET", PODS)).allowed


changes = st.lists(
    st.one_of(
        st.builds(
            lambda name, verb, namespace: role(name, rule(verb, "pods"), namespace=namespace),
            st.sampled_from("rs"), st.sampled_from(["get", "list"]), st.sampled_from(["", "ns"]),
        ),
        st.builds(
            lambda name, kind, to, user, namespace: binding(
                name, f"{kind if namespace else 'ClusterRole'}/{to}", USER | {"name": user}, namespace=namespace
            ),
            st.sampled_from("bc"), st.sampled_from(["Role", "ClusterRole"]), st.sampled_from("rs"),
            st.sampled_from(["jane", "john"]), st.sampled_from(["", "ns"]),
        ),
        st.tuples(
            st.sampled_from(["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]), st.sampled_from("rsbc")
        ),
    ),
    max_size=12,
)  # fmt: skip


@given(changes)
def test_an_updated_policy_is_the_policy_of_the_objects(steps: list[Any]) -> None:
    world = Objects()
    for step in steps:
        if isinstance(step, dict):
            world.put(step)
        else:
            kind, name = step
            namespace = "" if kind.startswith("Cluster") else "ns"
            if (f"{GROUP}/{kind.lower()}s", namespace, name) in world.records:
                world.remove(kind, name, namespace=namespace)
        fresh = Policy(json.loads(record.value) for record in world.records.values())
        for user in (User("jane"), User("john")):
            for namespace in ("", "ns"):
                assert set(world.authorizer.policy.rules_of(user, namespace)) == set(fresh.rules_of(user, namespace))


def labelled(obj: Object, **labels: str) -> Object:
    return obj | {"metadata": obj["metadata"] | {"labels": labels}}


def aggregating(name: str, **labels: str) -> Object:
    return role(name, aggregationRule={"clusterRoleSelectors": [{"matchLabels": labels}]})


def test_an_aggregated_role_is_the_sum_of_what_it_selects() -> None:
    roles = [
        aggregating("all", to="all"),
        labelled(aggregating("some", to="some"), to="all"),
        labelled(role("one", rule("get", "pods")), to="some"),
        labelled(role("two", rule("get", "nodes")), to="all"),
        role("three", rule("get", "secrets")),
    ]
    assert aggregated(roles[0], roles) == [rule("get", "pods"), rule("get", "nodes")]
    policy = Policy([*roles, binding("b", "ClusterRole/all", USER)])
    assert policy.allowed(JANE, asks("GET", PODS + "/a")).allowed
    assert not policy.allowed(JANE, asks("GET", "/api/v1/namespaces/ns/secrets/a")).allowed


def test_aggregation_in_a_circle_ends() -> None:
    one = labelled(aggregating("one", to="one"), to="two")
    two = labelled(aggregating("two", to="two"), to="one")
    assert aggregated(one, [one, two]) == []


DEFAULTS = Policy(bootstrap_objects())


@pytest.mark.parametrize(
    ("user", "method", "path", "expected"),
    [
        (ANONYMOUS, "GET", "/version", True),
        (ANONYMOUS, "GET", "/healthz", True),
        (ANONYMOUS, "GET", "/api", False),
        (ANONYMOUS, "GET", "/metrics", False),
        (ANONYMOUS, "GET", PODS, False),
        (JANE, "GET", "/apis/apps/v1", True),
        (JANE, "GET", "/openapi/v3", True),
        (JANE, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", True),
        (JANE, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", True),
        (JANE, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", False),
        (JANE, "GET", PODS, False),
        (ROBOT, "GET", "/openid/v1/jwks", True),
        (User("prometheus", ("system:monitoring",)), "GET", "/metrics", True),
    ],
)
def test_a_new_cluster_allows_little(user: User, method: str, path: str, expected: bool) -> None:
    assert DEFAULTS.allowed(user, asks(method, path)).allowed is expected


@pytest.mark.parametrize(
    ("given_role", "method", "path", "expected"),
    [
        ("view", "GET", PODS, True),
        ("view", "GET", PODS + "/a/log", True),
        ("view", "GET", "/api/v1/namespaces/ns/secrets", False),
        ("view", "POST", PODS, False),
        ("edit", "GET", PODS, True),
        ("edit", "POST", PODS, True),
        ("edit", "GET", "/api/v1/namespaces/ns/secrets/s", True),
        ("edit", "PATCH", "/apis/apps/v1/namespaces/ns/deployments/d/scale", True),
        ("edit", "POST", f"/apis/{GROUP}/v1/namespaces/ns/roles", False),
        ("admin", "GET", PODS, True),
        ("admin", "POST", f"/apis/{GROUP}/v1/namespaces/ns/rolebindings", True),
        ("admin", "DELETE", "/api/v1/namespaces/ns", False),
        ("cluster-admin", "DELETE", "/api/v1/namespaces/ns", True),
    ],
)
def test_the_roles_for_people_give_what_their_names_say(
    given_role: str, method: str, path: str, expected: bool
) -> None:
    policy = Policy([*bootstrap_objects(), binding("b", f"ClusterRole/{given_role}", USER, namespace="ns")])
    assert policy.allowed(User("jane"), asks(method, path)).allowed is expected


def test_the_objects_of_a_new_cluster_are_whole() -> None:
    objects = bootstrap_objects()
    roles = {each["metadata"]["name"] for each in objects if each["kind"] == "ClusterRole"}
    for each in objects:
        assert each["apiVersion"] == f"{GROUP}/v1"
        assert each["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
        assert each.get("rules") or each["roleRef"]["name"] in roles


EDITOR = [
    role("pods", rule("get list", "pods"), rule("create update", "roles rolebindings", groups=GROUP)),
    binding("b", "ClusterRole/pods", USER, namespace="ns"),
]


@pytest.mark.parametrize(
    "obj",
    [
        role("r", rule("get", "pods"), namespace="ns"),
        role("r", rule("get", "pods", names="a"), namespace="ns"),
        role("r", namespace="ns"),
        binding("x", "ClusterRole/pods", DEV, namespace="ns"),
        {"kind": "ConfigMap", "metadata": {"name": "x"}},
    ],
)
def test_users_may_give_what_they_have(obj: Object) -> None:
    check_escalation(Objects(*EDITOR).authorizer, JANE, obj)


@pytest.mark.parametrize(
    "obj",
    [
        role("r", rule("get delete", "pods"), namespace="ns"),
        role("r", rule("*", "pods"), namespace="ns"),
        role("r", rule("get", "pods"), namespace="other"),
        role("r", rule("get", "pods")),
        role("r", {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}),
        binding("x", "ClusterRole/cluster-admin", USER, namespace="ns"),
        binding("x", "ClusterRole/pods", USER),
        binding("x", "ClusterRole/not-there-yet", USER, namespace="ns"),
    ],
)
def test_users_may_not_give_what_they_do_not_have(obj: Object) -> None:
    world = Objects(*EDITOR, role("cluster-admin", rule("*", "*", groups="*")))
    with pytest.raises(Forbidden, match="is attempting to grant RBAC permissions not currently held"):
        check_escalation(world.authorizer, JANE, obj)
    check_escalation(world.authorizer, MASTER, obj)


def test_an_escalation_names_what_is_not_held() -> None:
    wanted = role("r", rule("get delete watch", "pods"), namespace="ns")
    with pytest.raises(Forbidden) as caught:
        check_escalation(Objects(*EDITOR).authorizer, JANE, wanted)
    assert caught.value.message == (
        'roles.rbac.authorization.k8s.io "r" is forbidden: user "jane" (groups=["dev" "system:authenticated"]) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete" "watch"]}'
    )


def test_escalate_and_bind_lift_the_check() -> None:
    may = role("may", rule("escalate", "roles", groups=GROUP), rule("bind", "clusterroles", groups=GROUP, names="big"))
    world = Objects(may, role("big", rule("*", "*", groups="*")), binding("b", "ClusterRole/may", USER))
    check_escalation(world.authorizer, JANE, role("r", rule("*", "*"), namespace="ns"))
    check_escalation(world.authorizer, JANE, binding("x", "ClusterRole/big", DEV, namespace="ns"))
    with pytest.raises(Forbidden):
        check_escalation(world.authorizer, JANE, binding("x", "ClusterRole/other", DEV, namespace="ns"))


def test_a_write_of_the_garbage_collector_is_not_an_escalation() -> None:
    for old in (
        role("r", rule("delete", "pods"), namespace="ns"),
        binding("x", "ClusterRole/big", DEV, namespace="ns"),
        role("all", aggregationRule={"clusterRoleSelectors": []}),
    ):
        collected = old["metadata"] | {"finalizers": [], "ownerReferences": [], "resourceVersion": "7"}
        check_escalation(Objects(*EDITOR).authorizer, JANE, old | {"metadata": collected}, old=old)


@pytest.mark.parametrize(
    "old",
    [
        role("strong", rule("*", "*", groups="*")),
        role("strong", rule("delete", "pods"), namespace="ns"),
        role("strong", aggregationRule={"clusterRoleSelectors": []}),
        binding("x", "ClusterRole/strong", DEV, namespace="ns"),
    ],
)
def test_a_label_on_what_a_user_does_not_have_is_an_escalation(old: Object) -> None:
    world = Objects(*EDITOR, role("strong", rule("*", "*", groups="*")))
    with pytest.raises(Forbidden):
        check_escalation(world.authorizer, JANE, labelled(old, **{f"{GROUP}/aggregate-to-view": "true"}), old=old)


def test_an_aggregation_rule_needs_all_permissions_to_be_set_or_removed() -> None:
    plain, collecting = role("r"), role("r", aggregationRule={"clusterRoleSelectors": []})
    for new, old in ((collecting, None), (collecting, plain), (plain, collecting)):
        with pytest.raises(Forbidden, match="must have cluster-admin privileges to use the aggregationRule"):
            check_escalation(Objects(*EDITOR).authorizer, JANE, new, old=old)
    everything = role("all", rule("*", "*", groups="*"), {"verbs": ["*"], "nonResourceURLs": ["*"]})
    check_escalation(Objects(everything, binding("b", "ClusterRole/all", USER)).authorizer, JANE, collecting)


def test_a_name_gives_no_permission() -> None:
    with pytest.raises(Forbidden):
        check_escalation(Objects(*EDITOR).authorizer, User("kube-apiserver"), role("r", rule("*", "*")))


def test_the_examples_of_the_documentation_on_granting_roles() -> None:
    """A user who may bind admin, edit and view in one namespace, without having what they grant."""
    grantor = role(
        "role-grantor",
        rule("create", "rolebindings", groups=GROUP),
        rule("bind", "clusterroles", groups=GROUP, names="admin edit view"),
    )
    user = User("user-1")
    bound = binding("role-grantor-binding", "ClusterRole/role-grantor", {"kind": "User", "name": "user-1"})
    bound |= {"kind": "RoleBinding", "metadata": {"name": "role-grantor-binding", "namespace": "user-1-namespace"}}
    world = Objects(*bootstrap_objects(), grantor, bound)
    for name in ("admin", "edit", "view"):
        given_role = binding("b", f"ClusterRole/{name}", DEV, namespace="user-1-namespace")
        check_escalation(world.authorizer, user, given_role)
        for elsewhere in (
            binding("b", f"ClusterRole/{name}", DEV, namespace="other"),
            binding("b", f"ClusterRole/{name}", DEV),
        ):
            with pytest.raises(Forbidden):
                check_escalation(world.authorizer, user, elsewhere)
    with pytest.raises(Forbidden):
        check_escalation(
            world.authorizer, user, binding("b", "ClusterRole/cluster-admin", DEV, namespace="user-1-namespace")
        )
    with pytest.raises(Forbidden):
        check_escalation(world.authorizer, user, role("r", rule("list", "secrets"), namespace="user-1-namespace"))


def test_a_rule_of_a_thousand_verbs_groups_and_resources_is_checked_without_their_products() -> None:
    many = " ".join(f"x{n}" for n in range(1_000))
    wanted = role("r", rule(f"get {many}", f"pods {many}", groups=many, names=many), namespace="ns")
    with pytest.raises(Forbidden, match="not currently held"):
        check_escalation(Objects(*EDITOR).authorizer, JANE, wanted)
    held = Objects(role("held", rule("*", "*", groups="*")), binding("b", "ClusterRole/held", USER))
    check_escalation(held.authorizer, JANE, wanted)


words = st.sampled_from(["*", "a", "b", "a/s", "*/s"])
rules = st.builds(
    Rule,
    verbs=st.lists(st.sampled_from(["*", "get", "list"]), min_size=1, max_size=2).map(tuple),
    groups=st.lists(st.sampled_from(["*", "", "g"]), min_size=1, max_size=2).map(tuple),
    resources=st.lists(words, min_size=1, max_size=2).map(tuple),
    names=st.lists(st.sampled_from(["x", "y"]), max_size=2).map(tuple),
)


@given(rules, rules, st.sampled_from(["get", "list"]), st.sampled_from(["", "g"]), st.sampled_from("ab"))
def test_what_is_covered_allows_nothing_that_the_cover_does_not(
    cover: Rule, covered: Rule, verb: str, group: str, resource: str
) -> None:
    if any(Held([cover]).uncovered(covered)):
        return
    for name in ("", "x", "y", "z"):
        for sub in ("", "s"):
            info = RequestInfo(
                verb=verb, path="", is_resource=True, group=group, resource=resource, subresource=sub, name=name
            )
            assert cover.allows(info) or not covered.allows(info)


def test_an_access_review_answers_with_the_reason() -> None:
    world = Objects(role("r", rule("get", "pods")), binding("b", "ClusterRole/r", USER))
    review = {
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "ns", "name": "a"}},
    }
    why = 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "jane"'
    assert reviews.access_review(world.authorizer, JANE, review)["status"] == {"allowed": True, "reason": why}
    assert reviews.access_review(world.authorizer, ROBOT, review)["status"] == {"allowed": False}


def test_an_access_review_of_another_user_or_a_path() -> None:
    world = Objects(role("r", {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}), binding("b", "ClusterRole/r", DEV))
    spec = {"user": "john", "groups": ["dev"], "nonResourceAttributes": {"verb": "get", "path": "/metrics"}}
    review = {"kind": "SubjectAccessReview", "spec": spec}
    assert reviews.access_review(world.authorizer, MASTER, review)["status"]["allowed"] is True
    other = review | {"spec": spec | {"groups": ["ops"]}}
    assert reviews.access_review(world.authorizer, MASTER, other)["status"] == {"allowed": False}


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("SelfSubjectAccessReview", {}),
        ("SelfSubjectAccessReview", {"resourceAttributes": {}, "nonResourceAttributes": {}}),
        ("SubjectAccessReview", {"resourceAttributes": {}}),
        ("LocalSubjectAccessReview", {"user": "x", "resourceAttributes": {"namespace": "other"}}),
    ],
)
def test_an_access_review_that_makes_no_sense_is_invalid(kind: str, spec: dict[str, Any]) -> None:
    review = {"kind": kind, "metadata": {"namespace": "ns"}, "spec": spec}
    with pytest.raises(Invalid):
        reviews.access_review(Objects().authorizer, JANE, review)


def test_a_rules_review_lists_what_a_user_may_do() -> None:
    world = Objects(
        role("r", rule("get", "pods", names="a"), {"verbs": ["get"], "nonResourceURLs": ["/x"]}),
        binding("b", "ClusterRole/r", USER),
    )
    status = reviews.rules_review(world.authorizer, JANE, {"spec": {"namespace": "ns"}})["status"]
    assert [each["resourceNames"] for each in status["resourceRules"]] == [("a",)]
    assert [each["nonResourceURLs"] for each in status["nonResourceRules"]] == [("/x",)]
    with pytest.raises(BadRequest):
        reviews.rules_review(world.authorizer, JANE, {"spec": {}})


def test_a_self_review_says_who_one_is() -> None:
    user = User("jane", ("dev",), "7", {"k": ("v",)})
    info = reviews.self_subject_review(user, {})["status"]["userInfo"]
    assert info == {"username": "jane", "groups": ["dev"], "uid": "7", "extra": {"k": ["v"]}}
