"""What every object has, and how objects refer to one another.

Written in the notation of `notation`; facts alone, no behaviour.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
ObjectMeta -- What the server and its clients know of any object.
  name string -- Unique among the objects of its kind in its namespace; cannot be changed.
  annotations {}string -- Pairs that say more of an object than selectors need.
  creationTimestamp *time -- When the server created the object.
  deletionGracePeriodSeconds *int64 -- Seconds that the object may take to end.
  deletionTimestamp *time -- When the object is to be gone; set by a graceful deletion.
  finalizers [set]string ~ -- Who must act before the object goes; it goes when the list is empty.
  generateName string -- Beginning of a name that the server is to complete.
  generation int64 -- Counts the changes of what is wanted.
  labels {}string -- Pairs by which objects are selected.
  managedFields []ManagedFieldsEntry -- Who set which fields, and how.
  namespace string -- The space within which the name is unique; empty for kinds without one.
  ownerReferences [uid]OwnerReference -- Objects whose end is also the end of this one.
  resourceVersion string -- Version of the object as stored; to be sent back with changes.
  selfLink string
  uid string -- Identity of this object in time and space, given by the server.

ManagedFieldsEntry
  apiVersion string; fieldsType string; fieldsV1 any; manager string; operation string; subresource string
  time *time

OwnerReference -- An object that this one depends on.
  name! string; apiVersion! string
  blockOwnerDeletion *bool -- Whether the owner stays, in a foreground deletion, until this object is gone.
  controller *bool -- Whether the owner manages this object; one owner at most does.
  kind! string; uid! string

LabelSelector atomic -- Labels that objects must have; all requirements together. Empty selects everything.
  matchExpressions []LabelSelectorRequirement -- Requirements with an operator.
  matchLabels {}string -- Labels with the value that each must have.

LabelSelectorRequirement
  key! string
  operator! string -- In, NotIn, Exists or DoesNotExist.
  values []string -- What In and NotIn compare with.

ObjectReference atomic -- Names another object.
  name string; apiVersion string; fieldPath string; kind string; namespace string; resourceVersion string
  uid string

LocalObjectReference atomic -- Names an object of the same namespace.
  name string

Condition -- One aspect of the state of an object.
  type! string; lastTransitionTime! time; message! string; observedGeneration int64; reason! string
  status! string

SecretReference atomic
  name string; namespace string

TypedLocalObjectReference atomic
  name! string; apiGroup *string; kind! string

TypedObjectReference
  name! string; apiGroup *string; kind! string; namespace *string

NodeSelector atomic
  nodeSelectorTerms! []NodeSelectorTerm

NodeSelectorTerm atomic
  matchExpressions []NodeSelectorRequirement; matchFields []NodeSelectorRequirement

NodeSelectorRequirement
  key! string; operator! string; values []string
"""
