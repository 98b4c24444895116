"""What keeps pods running, or runs them to their end.

Written in the notation of `notation`; facts alone, no behaviour.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
Deployment kind -- Keeps pods of one template running and replaces them step by step when it changes.
  spec DeploymentSpec -- What is wanted.
  status DeploymentStatus -- What was observed.

DeploymentSpec
  minReadySeconds int32 -- Seconds that a new pod must be ready before it counts as available.
  paused bool -- Whether changes are held back.
  progressDeadlineSeconds *int32 = 600 -- Seconds without progress after which the rollout has failed.
  replicas *int32 = 1 -- Number of pods wanted.
  revisionHistoryLimit *int32 = 10 -- Number of old ReplicaSets kept for a rollback.
  selector! *LabelSelector -- Which pods are its own; must match the template's labels.
  strategy DeploymentStrategy ~,retainKeys -- How old pods are replaced by new ones.
  template! PodTemplateSpec -- What the pods look like.

DeploymentStrategy
  type string = "RollingUpdate" -- RollingUpdate or Recreate.
  rollingUpdate *RollingUpdateDeployment

RollingUpdateDeployment
  maxSurge *intstr = "25%" -- Pods above the wanted number, or a percentage.
  maxUnavailable *intstr = "25%" -- Pods that may be missing, or a percentage.

DeploymentStatus
  availableReplicas int32 -- Pods that have been ready long enough.
  collisionCount *int32
  conditions [type]DeploymentCondition -- Where the rollout stands.
  observedGeneration int64 -- Generation that the controller has seen.
  readyReplicas int32 -- Pods that are ready.
  replicas int32 -- Pods that exist.
  terminatingReplicas *int32
  unavailableReplicas int32 -- Pods that are still missing.
  updatedReplicas int32 -- Pods of the newest template.

DeploymentCondition
  type! string; lastTransitionTime time; lastUpdateTime time; message string; reason string; status! string

ReplicaSet kind -- Keeps a number of equal pods running.
  spec ReplicaSetSpec -- What is wanted.
  status ReplicaSetStatus -- What was observed.

ReplicaSetSpec
  minReadySeconds int32 -- Seconds that a pod must be ready before it counts as available.
  replicas *int32 = 1 -- Number of pods wanted.
  selector! *LabelSelector -- Which pods are its own.
  template PodTemplateSpec -- What the pods look like.

ReplicaSetStatus
  availableReplicas int32; conditions [type]ReplicaSetCondition; fullyLabeledReplicas int32
  observedGeneration int64; readyReplicas int32; replicas! int32; terminatingReplicas *int32

ReplicaSetCondition
  type! string; lastTransitionTime time; message string; reason string; status! string

StatefulSet kind -- Keeps pods with stable names and storage running.
  spec StatefulSetSpec -- What is wanted.
  status StatefulSetStatus -- What was observed.

StatefulSetSpec
  minReadySeconds int32 -- Seconds that a pod must be ready before it counts as available.
  ordinals *StatefulSetOrdinals -- Number of the first pod.
  persistentVolumeClaimRetentionPolicy *StatefulSetPersistentVolumeClaimRetentionPolicy = {} -- Fate of claims.
  podManagementPolicy string = "OrderedReady" -- OrderedReady or Parallel.
  replicas *int32 = 1 -- Number of pods wanted.
  revisionHistoryLimit *int32 = 10 -- Number of old revisions kept.
  selector! *LabelSelector -- Which pods are its own; must match the template's labels.
  serviceName string -- Service that gives the pods their DNS names.
  template! PodTemplateSpec -- What the pods look like.
  updateStrategy StatefulSetUpdateStrategy -- How pods follow a changed template.
  volumeClaimTemplates []PersistentVolumeClaim -- A claim for each, made for every pod.

StatefulSetOrdinals
  start *int32

StatefulSetPersistentVolumeClaimRetentionPolicy
  whenDeleted string = "Retain"; whenScaled string = "Retain"

StatefulSetUpdateStrategy
  type string = "RollingUpdate"; rollingUpdate *RollingUpdateStatefulSetStrategy

RollingUpdateStatefulSetStrategy
  maxUnavailable *intstr; partition *int32 = 0

StatefulSetStatus
  availableReplicas int32 = 0; collisionCount *int32; conditions [type]StatefulSetCondition
  currentReplicas int32
  currentRevision string -- Revision of the pods not yet updated.
  observedGeneration int64
  readyReplicas int32 -- Pods that are ready.
  replicas! int32 -- Pods that exist.
  updateRevision string -- Revision that pods are updated to.
  updatedReplicas int32

StatefulSetCondition
  type! string; lastTransitionTime time; message string; reason string; status! string

DaemonSet kind -- Runs one pod on each node.
  spec DaemonSetSpec -- What is wanted.
  status DaemonSetStatus -- What was observed.

DaemonSetSpec
  minReadySeconds int32; revisionHistoryLimit *int32 = 10; selector! *LabelSelector; template! PodTemplateSpec
  updateStrategy DaemonSetUpdateStrategy

DaemonSetUpdateStrategy
  type string = "RollingUpdate"; rollingUpdate *RollingUpdateDaemonSet

RollingUpdateDaemonSet
  maxSurge *intstr = 0; maxUnavailable *intstr = 1

DaemonSetStatus
  collisionCount *int32; conditions [type]DaemonSetCondition; currentNumberScheduled! int32
  desiredNumberScheduled! int32; numberAvailable int32; numberMisscheduled! int32; numberReady! int32
  numberUnavailable int32; observedGeneration int64; updatedNumberScheduled int32

DaemonSetCondition
  type! string; lastTransitionTime time; message string; reason string; status! string

ControllerRevision kind -- A state of a template, kept for comparison and rollback.
  data any -- The state.
  revision! int64 -- Its number.

ReplicationController kind -- Keeps a number of equal pods running; use a Deployment instead.
  spec ReplicationControllerSpec -- What is wanted.
  status ReplicationControllerStatus -- What was observed.

ReplicationControllerSpec
  minReadySeconds int32; replicas *int32 = 1; selector {}string atomic; template *PodTemplateSpec

ReplicationControllerStatus
  availableReplicas int32; conditions [type]ReplicationControllerCondition; fullyLabeledReplicas int32
  observedGeneration int64; readyReplicas int32; replicas! int32

ReplicationControllerCondition
  type! string; lastTransitionTime time; message string; reason string; status! string

PodTemplate kind -- A stored description of pods.
  template PodTemplateSpec -- What the pods look like.

Job kind -- Runs pods until enough of them succeeded.
  spec JobSpec -- What is wanted.
  status JobStatus -- What was observed.

JobSpec
  activeDeadlineSeconds *int64 -- Seconds that the job may run.
  backoffLimit *int32 -- Failures after which the job has failed.
  backoffLimitPerIndex *int32
  completionMode *string = "NonIndexed" -- NonIndexed or Indexed.
  completions *int32 -- Number of pods that must succeed.
  managedBy *string
  manualSelector *bool -- Whether labels and selector are the user's affair.
  maxFailedIndexes *int32
  parallelism *int32 -- Number of pods that run at a time.
  podFailurePolicy *PodFailurePolicy; podReplacementPolicy *string
  selector *LabelSelector -- Which pods are its own; set by the server.
  successPolicy *SuccessPolicy
  suspend *bool = false -- Whether no pods are to run.
  template! PodTemplateSpec -- What the pods look like.
  ttlSecondsAfterFinished *int32 -- Seconds after which a finished job is removed.

PodFailurePolicy
  rules! []PodFailurePolicyRule

PodFailurePolicyRule
  action! string; onExitCodes *PodFailurePolicyOnExitCodesRequirement
  onPodConditions []PodFailurePolicyOnPodConditionsPattern

PodFailurePolicyOnExitCodesRequirement
  containerName *string; operator! string; values! [set]int32

PodFailurePolicyOnPodConditionsPattern
  type! string; status string = "True"

SuccessPolicy
  rules! []SuccessPolicyRule

SuccessPolicyRule
  succeededCount *int32; succeededIndexes *string

JobStatus
  active int32 -- Pods that run.
  completedIndexes string
  completionTime *time -- When it was complete.
  conditions []JobCondition ~type -- Where the job stands.
  failed int32 -- Pods that failed.
  failedIndexes *string; ready *int32
  startTime *time -- When it was taken up.
  succeeded int32 -- Pods that succeeded.
  terminating *int32; uncountedTerminatedPods *UncountedTerminatedPods

JobCondition
  type! string; lastProbeTime time; lastTransitionTime time; message string; reason string; status! string

UncountedTerminatedPods
  failed [set]string; succeeded [set]string

CronJob kind -- Makes jobs by a schedule.
  spec! CronJobSpec -- What is wanted.
  status CronJobStatus -- What was observed.

CronJobSpec
  concurrencyPolicy string = "Allow" -- Allow, Forbid or Replace.
  failedJobsHistoryLimit *int32 = 1
  jobTemplate! JobTemplateSpec -- What the jobs look like.
  schedule! string -- When, in the five fields of cron.
  startingDeadlineSeconds *int64 -- Seconds that a job may be late.
  successfulJobsHistoryLimit *int32 = 3
  suspend *bool = false -- Whether no jobs are made.
  timeZone *string -- Zone of the schedule.

JobTemplateSpec
  metadata ObjectMeta; spec JobSpec

CronJobStatus
  active []ObjectReference; lastScheduleTime *time; lastSuccessfulTime *time
"""
