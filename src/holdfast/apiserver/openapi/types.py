"""The types that every API has though no resource is one of them, in the notation of the built-in ones.

Facts alone, no behaviour.
"""

from __future__ import annotations

from typing import Final

from holdfast.apiserver.builtins.notation import Types
from holdfast.apiserver.builtins.types import metadata

COMMON: Final = Types(
    metadata.TEXT,
    """
ListMeta -- What the server knows of a list.
  continue string -- What to ask with for the items that follow.
  remainingItemCount *int64 -- How many items follow, where that is known.
  resourceVersion string -- The version of the store that the list shows; to be watched from.
  selfLink string

Status -- How a request ended.
  apiVersion string -- Group and version of this representation.
  kind string -- What the object is.
  code int32 -- The HTTP status code.
  details *StatusDetails -- What the refusal is about.
  message string -- A sentence for people.
  metadata ListMeta
  reason string -- A word for machines that says why a request was refused.
  status string -- Success or Failure.

StatusDetails
  causes []StatusCause -- Each problem that was found.
  group string; kind string; name string; retryAfterSeconds int32; uid string

StatusCause
  field string -- The field that has the problem.
  message string; reason string

DeleteOptions -- How an object is to be deleted.
  apiVersion string -- Group and version of this representation.
  dryRun []string -- All: do everything but the deletion.
  gracePeriodSeconds *int64 -- Seconds that the object may take to end; 0 is at once.
  kind string -- What the object is.
  orphanDependents *bool
  preconditions *Preconditions -- What must hold of the object, or it stays.
  propagationPolicy *string -- Orphan, Background or Foreground: what becomes of dependents.

Preconditions
  resourceVersion *string; uid *string

Scale kind -- How many replicas a resource has and is to have.
  spec ScaleSpec -- What is wanted.
  status ScaleStatus -- What there is.

ScaleSpec
  replicas int32 -- How many replicas there are to be.

ScaleStatus
  replicas! int32 -- How many replicas there are.
  selector string -- Which pods are counted, as a label selector.

Eviction kind -- Asks that a pod be deleted if its disruption budgets allow that.
  deleteOptions *DeleteOptions

Binding kind -- Assigns a pod to a node.
  target! ObjectReference

TokenRequest kind -- Asks for a token of a service account.
  spec! TokenRequestSpec
  status TokenRequestStatus

TokenRequestSpec
  audiences! []string -- Who is to accept the token.
  boundObjectRef *BoundObjectReference -- The token ends with this object.
  expirationSeconds *int64 = 3600 -- How long the token is wanted to be valid.

BoundObjectReference
  apiVersion string; kind string; name string; uid string

TokenRequestStatus
  expirationTimestamp! time; token! string
""",
)

MACHINERY: Final = frozenset(
    {
        "Condition",
        "DeleteOptions",
        "LabelSelector",
        "LabelSelectorRequirement",
        "ListMeta",
        "ManagedFieldsEntry",
        "ObjectMeta",
        "OwnerReference",
        "Preconditions",
        "Status",
        "StatusCause",
        "StatusDetails",
    }
)
"""Types that belong to no group."""
