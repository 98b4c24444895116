"""The numbers of fields in protocol buffers: namespaces, configuration, nodes, events and what limits them.

Written in the notation of `numbers`; facts alone, no behaviour.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
Namespace metadata 1 spec 2 status 3
NamespaceSpec finalizers 1
NamespaceStatus phase 1 conditions 2
NamespaceCondition type 1 status 2 lastTransitionTime 4 reason 5 message 6
ConfigMap metadata 1 data 2 binaryData 3 immutable 4
Secret metadata 1 data 2 type 3 stringData 4 immutable 5
ServiceAccount metadata 1 secrets 2 imagePullSecrets 3 automountServiceAccountToken 4
Event metadata 1 involvedObject 2 reason 3 message 4 source 5 firstTimestamp 6 lastTimestamp 7 count 8 type 9
  eventTime 10 series 11 action 12 related 13 reportingComponent 14 reportingInstance 15
EventSeries count 1 lastObservedTime 2
EventSource component 1 host 2
NewEvent metadata 1 eventTime 2 series 3 reportingController 4 reportingInstance 5 action 6 reason 7 regarding 8
  related 9 note 10 type 11 deprecatedSource 12 deprecatedFirstTimestamp 13 deprecatedLastTimestamp 14
  deprecatedCount 15
NewEventSeries count 1 lastObservedTime 2
LimitRange metadata 1 spec 2
LimitRangeSpec limits 1
LimitRangeItem type 1 max 2 min 3 default 4 defaultRequest 5 maxLimitRequestRatio 6
ResourceQuota metadata 1 spec 2 status 3
ResourceQuotaSpec hard 1 scopes 2 scopeSelector 3
ScopeSelector matchExpressions 1
ScopedResourceSelectorRequirement scopeName 1 operator 2 values 3
ResourceQuotaStatus hard 1 used 2
Node metadata 1 spec 2 status 3
NodeSpec podCIDR 1 externalID 2 providerID 3 unschedulable 4 taints 5 configSource 6 podCIDRs 7
NodeConfigSource configMap 2
ConfigMapNodeConfigSource namespace 1 name 2 uid 3 resourceVersion 4 kubeletConfigKey 5
Taint key 1 value 2 effect 3 timeAdded 4
NodeStatus capacity 1 allocatable 2 phase 3 conditions 4 addresses 5 daemonEndpoints 6 nodeInfo 7 images 8
  volumesInUse 9 volumesAttached 10 config 11 runtimeHandlers 12 features 13 declaredFeatures 14
NodeAddress type 1 address 2
NodeCondition type 1 status 2 lastHeartbeatTime 3 lastTransitionTime 4 reason 5 message 6
NodeConfigStatus assigned 1 active 2 lastKnownGood 3 error 4
NodeDaemonEndpoints kubeletEndpoint 1
DaemonEndpoint Port 1
NodeFeatures supplementalGroupsPolicy 1
ContainerImage names 1 sizeBytes 2
NodeSystemInfo machineID 1 systemUUID 2 bootID 3 kernelVersion 4 osImage 5 containerRuntimeVersion 6
  kubeletVersion 7 kubeProxyVersion 8 operatingSystem 9 architecture 10 swap 11
NodeSwapStatus capacity 1
NodeRuntimeHandler name 1 features 2
NodeRuntimeHandlerFeatures recursiveReadOnlyMounts 1 userNamespaces 2
AttachedVolume name 1 devicePath 2
Lease metadata 1 spec 2
LeaseSpec holderIdentity 1 leaseDurationSeconds 2 acquireTime 3 renewTime 4 leaseTransitions 5 strategy 6
  preferredHolder 7
PriorityClass metadata 1 value 2 globalDefault 3 description 4 preemptionPolicy 5
RuntimeClass metadata 1 handler 2 overhead 3 scheduling 4
Overhead podFixed 1
Scheduling nodeSelector 1 tolerations 2
"""
