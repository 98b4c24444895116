"""Reviews: TokenReview, SelfSubjectReview and the access reviews, which are answered and not stored."""

from __future__ import annotations

from typing import Final

from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.resources import ResourceType

AUTHENTICATION: Final = "authentication.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"


def _review(kind: str, group: str, *, namespaced: bool = False) -> ResourceType:
    return builtin(kind, group=group, namespaced=namespaced, verbs=("create",), generation=False)


RESOURCES: Final[tuple[ResourceType, ...]] = (
    _review("TokenReview", AUTHENTICATION),
    _review("SelfSubjectReview", AUTHENTICATION),
    _review("SubjectAccessReview", AUTHORIZATION),
    _review("SelfSubjectAccessReview", AUTHORIZATION),
    _review("SelfSubjectRulesReview", AUTHORIZATION),
    _review("LocalSubjectAccessReview", AUTHORIZATION, namespaced=True),
)
