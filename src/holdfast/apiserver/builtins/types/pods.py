"""Pods and pod templates.

Written in the notation of `notation`; facts alone, no behaviour.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
Pod kind -- A group of containers that run together on one node.
  spec PodSpec -- What is to run.
  status PodStatus -- What was last seen of it.

PodSpec
  activeDeadlineSeconds *int64 -- Seconds that the pod may run.
  affinity *Affinity -- Rules about nodes and other pods to be near to or far from.
  automountServiceAccountToken *bool
  containers! [name]Container -- Containers of the pod; at least one.
  dnsConfig *PodDNSConfig
  dnsPolicy string = "ClusterFirst" -- ClusterFirst, ClusterFirstWithHostNet, Default or None.
  enableServiceLinks *bool -- Whether services appear as environment variables.
  ephemeralContainers [name]EphemeralContainer; hostAliases [ip]HostAlias; hostIPC bool
  hostNetwork bool -- Whether the pod uses the node's network.
  hostPID bool; hostUsers *bool
  hostname string -- Host name within the pod.
  hostnameOverride *string
  imagePullSecrets [name]LocalObjectReference -- Secrets for pulling images.
  initContainers [name]Container -- Containers that run before the others, one after another.
  nodeName string -- Node that the pod runs on.
  nodeSelector {}string atomic -- Labels that the node must have.
  os *PodOS
  overhead {}quantity -- What the runtime itself needs.
  preemptionPolicy *string; priority *int32
  priorityClassName string -- Name of the pod's importance.
  readinessGates []PodReadinessGate -- Conditions that must hold for the pod to be ready.
  resourceClaims [name]PodResourceClaim ~name,retainKeys
  resources *ResourceRequirements -- How much all containers together need and may take.
  restartPolicy string = "Always" -- Always, OnFailure or Never.
  runtimeClassName *string -- RuntimeClass that runs the pod.
  schedulerName string = "default-scheduler" -- Scheduler that finds a node.
  schedulingGates [name]PodSchedulingGate -- What must be removed before the pod is scheduled.
  schedulingGroup *PodSchedulingGroup
  securityContext *PodSecurityContext = {} -- Rights of all containers' processes.
  serviceAccount string
  serviceAccountName string -- ServiceAccount that the pod acts as.
  setHostnameAsFQDN *bool; shareProcessNamespace *bool
  subdomain string -- Part of the pod's DNS name.
  terminationGracePeriodSeconds *int64 = 30 -- Seconds that the containers may take to end.
  tolerations []Toleration -- Taints of nodes that the pod bears.
  topologySpreadConstraints [topologyKey,whenUnsatisfiable]TopologySpreadConstraint ~topologyKey -- How to spread.
  volumes [name]Volume ~name,retainKeys -- Directories and devices that containers may mount.

Affinity
  nodeAffinity *NodeAffinity; podAffinity *PodAffinity; podAntiAffinity *PodAntiAffinity

NodeAffinity
  preferredDuringSchedulingIgnoredDuringExecution []PreferredSchedulingTerm
  requiredDuringSchedulingIgnoredDuringExecution *NodeSelector

PreferredSchedulingTerm
  preference! NodeSelectorTerm; weight! int32

PodAffinity
  preferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm
  requiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm

WeightedPodAffinityTerm
  podAffinityTerm! PodAffinityTerm; weight! int32

PodAffinityTerm
  labelSelector *LabelSelector; matchLabelKeys []string; mismatchLabelKeys []string
  namespaceSelector *LabelSelector; namespaces []string; topologyKey! string

PodAntiAffinity
  preferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm
  requiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm

PodDNSConfig
  nameservers []string; options []PodDNSConfigOption; searches []string

PodDNSConfigOption
  name string; value *string

HostAlias
  hostnames []string; ip! string

PodOS
  name! string

PodReadinessGate
  conditionType! string

PodResourceClaim
  name! string; resourceClaimName *string; resourceClaimTemplateName *string

PodSchedulingGate
  name! string

PodSchedulingGroup
  podGroupName *string

PodSecurityContext
  appArmorProfile *AppArmorProfile; fsGroup *int64; fsGroupChangePolicy *string; runAsGroup *int64
  runAsNonRoot *bool; runAsUser *int64; seLinuxChangePolicy *string; seLinuxOptions *SELinuxOptions
  seccompProfile *SeccompProfile; supplementalGroups []int64; supplementalGroupsPolicy *string; sysctls []Sysctl
  windowsOptions *WindowsSecurityContextOptions

Sysctl
  name! string; value! string

Toleration
  key string
  effect string -- NoSchedule, PreferNoSchedule, NoExecute; empty means all.
  operator string -- Equal or Exists.
  tolerationSeconds *int64 -- Seconds that a NoExecute taint is borne.
  value string

TopologySpreadConstraint
  labelSelector *LabelSelector; matchLabelKeys []string; maxSkew! int32; minDomains *int32
  nodeAffinityPolicy *string; nodeTaintsPolicy *string; topologyKey! string; whenUnsatisfiable! string

PodStatus
  allocatedResources {}quantity
  conditions [type]PodCondition -- Where the pod stands.
  containerStatuses []ContainerStatus -- What was last seen of each container.
  ephemeralContainerStatuses []ContainerStatus; extendedResourceClaimStatus *PodExtendedResourceClaimStatus
  hostIP string -- Address of its node.
  hostIPs []HostIP ~ip; initContainerStatuses []ContainerStatus
  message string -- A sentence that says why.
  nodeAllocatableResourceClaimStatuses [resourceClaimName]NodeAllocatableResourceClaimStatus ~-
  nominatedNodeName string; observedGeneration int64
  phase string -- Pending, Running, Succeeded, Failed or Unknown.
  podIP string -- Address of the pod.
  podIPs [ip]PodIP
  qosClass string -- Guaranteed, Burstable or BestEffort.
  reason string -- A word that says why the pod is in this state.
  resize string; resourceClaimStatuses [name]PodResourceClaimStatus ~name,retainKeys
  resources *ResourceRequirements
  startTime *time -- When the node took it up.

PodCondition
  type! string; lastProbeTime time; lastTransitionTime time; message string; observedGeneration int64
  reason string; status! string

ContainerStatus
  name! string; allocatedResources {}quantity; allocatedResourcesStatus [name]ResourceStatus ~-
  containerID string; image! string; imageID! string; lastState ContainerState; ready! bool
  resources *ResourceRequirements; restartCount! int32; started *bool; state ContainerState; stopSignal *string
  user *ContainerUser; volumeMounts [mountPath]VolumeMountStatus

ResourceStatus
  name! string; resources [resourceID]ResourceHealth ~-

ResourceHealth
  health string; message string; resourceID! string

ContainerState
  running *ContainerStateRunning; terminated *ContainerStateTerminated; waiting *ContainerStateWaiting

ContainerStateRunning
  startedAt time

ContainerStateTerminated
  containerID string; exitCode! int32; finishedAt time; message string; reason string; signal int32
  startedAt time

ContainerStateWaiting
  message string; reason string

ContainerUser
  linux *LinuxContainerUser

LinuxContainerUser
  gid! int64; supplementalGroups []int64; uid! int64

VolumeMountStatus
  name! string; mountPath! string; readOnly bool; recursiveReadOnly *string; volumeStatus *VolumeStatus

VolumeStatus
  image *ImageVolumeStatus

ImageVolumeStatus
  imageRef! string

PodExtendedResourceClaimStatus
  requestMappings! []ContainerExtendedResourceRequest; resourceClaimName! string

ContainerExtendedResourceRequest
  containerName! string; requestName! string; resourceName! string

HostIP
  ip! string

NodeAllocatableResourceClaimStatus
  containers []string; resourceClaimName! string; resources! {}quantity

PodIP
  ip! string

PodResourceClaimStatus
  name! string; resourceClaimName *string

PodTemplateSpec -- What pods made from it look like.
  metadata ObjectMeta -- Labels and annotations of the pods.
  spec PodSpec -- What the pods run.
"""
