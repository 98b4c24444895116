"""Namespaces, configuration, nodes, events and what limits them.

Written in the notation of `notation`; facts alone, no behaviour.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
Namespace kind -- A space for names and rights.
  spec NamespaceSpec -- What is wanted.
  status NamespaceStatus -- Where it stands.

NamespaceSpec
  finalizers []string

NamespaceStatus
  conditions [type]NamespaceCondition
  phase string = "Active" -- Active or Terminating.

NamespaceCondition
  type! string; lastTransitionTime time; message string; reason string; status! string

ConfigMap kind -- Configuration for pods to read.
  binaryData {}bytes -- Bytes by key, in base64.
  data {}string -- Texts by key.
  immutable *bool -- Whether the data can no longer be changed.

Secret kind -- Configuration that few may read.
  type string = "Opaque" -- Who understands it; Opaque if nobody in particular.
  data {}bytes -- Bytes by key, in base64.
  immutable *bool -- Whether the data can no longer be changed.
  stringData {}string -- Texts by key; written into data, never read back.

ServiceAccount kind -- An identity for processes in pods.
  automountServiceAccountToken *bool -- Whether pods get a token of it.
  imagePullSecrets []LocalObjectReference -- Secrets for pulling images.
  secrets [name]ObjectReference

Event kind -- Something that happened to an object.
  type string -- Normal or Warning.
  action string -- What was done.
  count int32 -- How often it happened.
  eventTime microtime
  firstTimestamp time -- When it happened first.
  involvedObject! ObjectReference -- What it happened to.
  lastTimestamp time -- When it happened last.
  message string -- A sentence for people.
  reason string -- A word that says why.
  related *ObjectReference
  reportingComponent string = "" -- Who tells it, as a controller's name.
  reportingInstance string = ""; series *EventSeries
  source EventSource -- Who tells it.

EventSeries
  count int32; lastObservedTime microtime

EventSource
  component string; host string

NewEvent kind -- Something that happened to an object.
  type string -- Normal or Warning.
  action string -- What was done.
  deprecatedCount int32; deprecatedFirstTimestamp time; deprecatedLastTimestamp time
  deprecatedSource EventSource
  eventTime! microtime -- When it was seen first.
  note string -- A sentence for people.
  reason string -- A word that says why.
  regarding ObjectReference -- What it happened to.
  related *ObjectReference
  reportingController string -- Who tells it.
  reportingInstance string; series *NewEventSeries

NewEventSeries
  count! int32; lastObservedTime! microtime

LimitRange kind -- Bounds and defaults for the resources of a namespace's pods.
  spec LimitRangeSpec -- The bounds.

LimitRangeSpec
  limits! []LimitRangeItem

LimitRangeItem
  type! string; default {}quantity; defaultRequest {}quantity; max {}quantity; maxLimitRequestRatio {}quantity
  min {}quantity

ResourceQuota kind -- How much a namespace may use in all.
  spec ResourceQuotaSpec -- What may be used.
  status ResourceQuotaStatus -- What is used.

ResourceQuotaSpec
  hard {}quantity; scopeSelector *ScopeSelector; scopes []string

ScopeSelector atomic
  matchExpressions []ScopedResourceSelectorRequirement

ScopedResourceSelectorRequirement
  operator! string; scopeName! string; values []string

ResourceQuotaStatus
  hard {}quantity; used {}quantity

Node kind -- A machine that runs pods.
  spec NodeSpec -- What is wanted of it.
  status NodeStatus -- What it is and has.

NodeSpec
  configSource *NodeConfigSource; externalID string
  podCIDR string -- Addresses for its pods.
  podCIDRs [set]string ~
  providerID string -- How the provider names the machine.
  taints []Taint -- What pods must bear to come here.
  unschedulable bool -- Whether no new pods are to come.

NodeConfigSource
  configMap *ConfigMapNodeConfigSource

ConfigMapNodeConfigSource
  name! string; kubeletConfigKey! string; namespace! string; resourceVersion string; uid string

Taint
  key! string; effect! string; timeAdded *time; value string

NodeStatus
  addresses [type]NodeAddress -- How the node is reached.
  allocatable {}quantity -- What pods may use.
  capacity {}quantity -- What the node has.
  conditions [type]NodeCondition -- How the node is.
  config *NodeConfigStatus; daemonEndpoints NodeDaemonEndpoints; declaredFeatures []string
  features *NodeFeatures; images []ContainerImage
  nodeInfo NodeSystemInfo -- Versions and identities.
  phase string; runtimeHandlers []NodeRuntimeHandler; volumesAttached []AttachedVolume; volumesInUse []string

NodeAddress
  type! string; address! string

NodeCondition
  type! string; lastHeartbeatTime time; lastTransitionTime time; message string; reason string; status! string

NodeConfigStatus
  active *NodeConfigSource; assigned *NodeConfigSource; error string; lastKnownGood *NodeConfigSource

NodeDaemonEndpoints
  kubeletEndpoint DaemonEndpoint

DaemonEndpoint
  Port! int32

NodeFeatures
  supplementalGroupsPolicy *bool

ContainerImage
  names []string; sizeBytes int64

NodeSystemInfo
  architecture! string; bootID! string; containerRuntimeVersion! string; kernelVersion! string
  kubeProxyVersion! string; kubeletVersion! string; machineID! string; operatingSystem! string; osImage! string
  swap *NodeSwapStatus; systemUUID! string

NodeSwapStatus
  capacity *int64

NodeRuntimeHandler
  name string; features *NodeRuntimeHandlerFeatures

NodeRuntimeHandlerFeatures
  recursiveReadOnlyMounts *bool; userNamespaces *bool

AttachedVolume
  name! string; devicePath! string

Lease kind -- A claim to something for a time.
  spec LeaseSpec -- Who holds it, and for how long.

LeaseSpec
  acquireTime *microtime -- When the holder got it.
  holderIdentity *string -- Who holds it.
  leaseDurationSeconds *int32 -- Seconds from the last renewal to the end.
  leaseTransitions *int32 -- How often the holder changed.
  preferredHolder *string
  renewTime *microtime -- When the holder renewed it last.
  strategy *string

PriorityClass kind -- A name for the importance of pods.
  description string -- When to use it.
  globalDefault bool -- Whether pods without a class have this one.
  preemptionPolicy *string = "PreemptLowerPriority" -- PreemptLowerPriority or Never.
  value int32 -- The importance; more is more.

RuntimeClass kind -- A way to run containers.
  handler! string -- How the node's runtime names it.
  overhead *Overhead; scheduling *Scheduling

Overhead
  podFixed {}quantity

Scheduling
  nodeSelector {}string atomic; tolerations []Toleration
"""
