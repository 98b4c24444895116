"""The names of the objects of an inference gang.

For a PodCliqueSet `P`, its replica `i`, a scaling group `G`, its replica `j` and a clique `C`:

    P-i          the headless Service and the base PodGang of a replica
    P-i-C        a standalone PodClique
    P-i-G        a PodCliqueScalingGroup
    P-i-G-j-C    a PodClique of a scaling group
    P-i-G-k      the PodGang of a replica of a scaling group beyond minAvailable, k = j - minAvailable

Names are never parsed: labels say what an object belongs to.
"""

from __future__ import annotations


def replica(set_name: str, index: int) -> str:
    """The Service and the base PodGang of a replica of a set."""
    return f"{set_name}-{index}"


def clique(set_name: str, index: int, template: str) -> str:
    """A standalone PodClique."""
    return f"{replica(set_name, index)}-{template}"


def group(set_name: str, index: int, template: str) -> str:
    """A PodCliqueScalingGroup."""
    return f"{replica(set_name, index)}-{template}"


def member(group_name: str, index: int, template: str) -> str:
    """A PodClique of one replica of a scaling group."""
    return f"{group_name}-{index}-{template}"


def scaled_gang(group_name: str, index: int, *, minimum: int) -> str:
    """The PodGang of replica `index` of a scaling group, beyond the `minimum` that is in the base gang."""
    return f"{group_name}-{index - minimum}"


def role(set_name: str) -> str:
    """The Role and RoleBinding that let pods read the pods that they start after."""
    return f"grove.io:pcs:{set_name}"


def token_secret(set_name: str) -> str:
    """The Secret with the token of those pods."""
    return f"{set_name}-ic-sat"


def hostname(clique_name: str, pod_index: int) -> str:
    return f"{clique_name}-{pod_index}"


def service_address(service: str, namespace: str) -> str:
    return f"{service}.{namespace}.svc.cluster.local"
