"""Autoscaling, disruption, roles, webhooks, definitions and reviews.

Written in the notation of `notation`; facts alone, no behaviour.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
HorizontalPodAutoscaler kind -- Sets the number of replicas of something by what is measured.
  spec! HorizontalPodAutoscalerSpec -- The bounds and the measures.
  status HorizontalPodAutoscalerStatus -- What was measured and done.

HorizontalPodAutoscalerSpec
  behavior *HorizontalPodAutoscalerBehavior -- How fast it goes up and down.
  maxReplicas! int32 -- Replicas at most.
  metrics []MetricSpec -- What is measured.
  minReplicas *int32 = 1 -- Replicas at least.
  scaleTargetRef! CrossVersionObjectReference -- What is scaled.

HorizontalPodAutoscalerBehavior
  scaleDown *HPAScalingRules; scaleUp *HPAScalingRules

HPAScalingRules
  policies []HPAScalingPolicy; selectPolicy *string; stabilizationWindowSeconds *int32; tolerance *quantity

HPAScalingPolicy
  type! string; periodSeconds! int32; value! int32

MetricSpec
  type! string; containerResource *ContainerResourceMetricSource; external *ExternalMetricSource
  object *ObjectMetricSource; pods *PodsMetricSource; resource *ResourceMetricSource

ContainerResourceMetricSource
  name! string; container! string; target! MetricTarget

MetricTarget
  type! string; averageUtilization *int32; averageValue *quantity; value *quantity

ExternalMetricSource
  metric! MetricIdentifier; target! MetricTarget

MetricIdentifier
  name! string; selector *LabelSelector

ObjectMetricSource
  describedObject! CrossVersionObjectReference; metric! MetricIdentifier; target! MetricTarget

CrossVersionObjectReference atomic
  name! string; apiVersion string; kind! string

PodsMetricSource
  metric! MetricIdentifier; target! MetricTarget

ResourceMetricSource
  name! string; target! MetricTarget

HorizontalPodAutoscalerStatus
  conditions [type]HorizontalPodAutoscalerCondition; currentMetrics []MetricStatus; currentReplicas int32
  desiredReplicas! int32; lastScaleTime *time; observedGeneration int64

HorizontalPodAutoscalerCondition
  type! string; lastTransitionTime time; message string; reason string; status! string

MetricStatus
  type! string; containerResource *ContainerResourceMetricStatus; external *ExternalMetricStatus
  object *ObjectMetricStatus; pods *PodsMetricStatus; resource *ResourceMetricStatus

ContainerResourceMetricStatus
  name! string; container! string; current! MetricValueStatus

MetricValueStatus
  averageUtilization *int32; averageValue *quantity; value *quantity

ExternalMetricStatus
  current! MetricValueStatus; metric! MetricIdentifier

ObjectMetricStatus
  current! MetricValueStatus; describedObject! CrossVersionObjectReference; metric! MetricIdentifier

PodsMetricStatus
  current! MetricValueStatus; metric! MetricIdentifier

ResourceMetricStatus
  name! string; current! MetricValueStatus

HorizontalPodAutoscalerV1 kind -- Sets the number of replicas of something by its CPU use.
  spec! HorizontalPodAutoscalerSpecV1 -- The bounds and the measure.
  status HorizontalPodAutoscalerStatusV1 -- What was measured and done.

HorizontalPodAutoscalerSpecV1
  maxReplicas! int32; minReplicas *int32 = 1; scaleTargetRef! CrossVersionObjectReference
  targetCPUUtilizationPercentage *int32

HorizontalPodAutoscalerStatusV1
  currentCPUUtilizationPercentage *int32; currentReplicas! int32; desiredReplicas! int32; lastScaleTime *time
  observedGeneration int64

PodDisruptionBudget kind -- How many pods of a set may be taken away at a time.
  spec PodDisruptionBudgetSpec -- The budget.
  status PodDisruptionBudgetStatus -- What is left of it.

PodDisruptionBudgetSpec
  maxUnavailable *intstr -- Pods that may be missing, or a percentage.
  minAvailable *intstr -- Pods that must stay, or a percentage.
  selector *LabelSelector -- Pods that the budget is about.
  unhealthyPodEvictionPolicy *string -- IfHealthyBudget or AlwaysAllow.

PodDisruptionBudgetStatus
  conditions [type]Condition
  currentHealthy int32 = 0 -- Pods that are healthy.
  desiredHealthy int32 = 0 -- Pods that must be.
  disruptedPods {}time
  disruptionsAllowed int32 = 0 -- Pods that may be taken away now.
  expectedPods int32 = 0 -- Pods that the budget counts.
  observedGeneration int64

Role kind -- Rights within a namespace.
  rules []PolicyRule -- The rights.

PolicyRule
  apiGroups []string -- Groups of the resources.
  nonResourceURLs []string -- Paths beside resources.
  resourceNames []string -- Objects; all if not said.
  resources []string -- Resources, subresources after a slash.
  verbs! []string -- What may be done; * is everything.

RoleBinding kind -- Gives a role to users, groups and service accounts within a namespace.
  roleRef! RoleRef -- The role; cannot be changed.
  subjects []Subject -- Who gets it.

RoleRef atomic
  name! string; apiGroup string = "rbac.authorization.k8s.io"; kind! string

Subject atomic
  name! string; apiGroup string; kind! string; namespace string

ClusterRole kind -- Rights in all namespaces and on what has none.
  aggregationRule *AggregationRule -- Roles that this one is put together from.
  rules []PolicyRule -- The rights.

AggregationRule
  clusterRoleSelectors []LabelSelector

ClusterRoleBinding kind -- Gives a role to users, groups and service accounts everywhere.
  roleRef! RoleRef -- The role; cannot be changed.
  subjects []Subject -- Who gets it.

ValidatingWebhookConfiguration kind -- Webhooks that may refuse writes.
  webhooks [name]ValidatingWebhook -- The webhooks.

ValidatingWebhook
  name! string; admissionReviewVersions! []string; clientConfig! WebhookClientConfig
  failurePolicy *string = "Fail"; matchConditions [name]MatchCondition; matchPolicy *string = "Equivalent"
  namespaceSelector *LabelSelector = {}
  objectSelector *LabelSelector = {}
  rules []RuleWithOperations; sideEffects! *string; timeoutSeconds *int32 = 10

WebhookClientConfig
  caBundle bytes; service *ServiceReference; url *string

ServiceReference
  name! string; namespace! string; path *string; port *int32 = 443

MatchCondition
  name! string; expression! string

RuleWithOperations
  apiGroups []string; apiVersions []string; operations []string; resources []string; scope *string = "*"

MutatingWebhookConfiguration kind -- Webhooks that may change writes.
  webhooks [name]MutatingWebhook -- The webhooks.

MutatingWebhook
  name! string; admissionReviewVersions! []string; clientConfig! WebhookClientConfig
  failurePolicy *string = "Fail"; matchConditions [name]MatchCondition; matchPolicy *string = "Equivalent"
  namespaceSelector *LabelSelector = {}
  objectSelector *LabelSelector = {}
  reinvocationPolicy *string = "Never"; rules []RuleWithOperations; sideEffects! *string
  timeoutSeconds *int32 = 10

CustomResourceDefinition kind -- Defines a kind of objects.
  spec! CustomResourceDefinitionSpec -- The kind and its versions.
  status CustomResourceDefinitionStatus -- Whether it is served.

CustomResourceDefinitionSpec
  conversion *CustomResourceConversion -- How versions are made of one another.
  group! string -- API group of the kind.
  names! CustomResourceDefinitionNames -- How it is called.
  preserveUnknownFields bool
  scope! string -- Namespaced or Cluster.
  versions! []CustomResourceDefinitionVersion -- The versions and their schemas.

CustomResourceConversion
  strategy! string = "None"; webhook *WebhookConversion

WebhookConversion
  clientConfig *ConversionClientConfig; conversionReviewVersions! []string

ConversionClientConfig
  caBundle bytes; service *ConversionServiceReference; url *string

ConversionServiceReference
  name! string; namespace! string; path *string; port *int32 = 443

CustomResourceDefinitionNames
  categories []string; kind! string; listKind string; plural! string; shortNames []string; singular string

CustomResourceDefinitionVersion
  name! string; additionalPrinterColumns []CustomResourceColumnDefinition; deprecated bool
  deprecationWarning *string; schema *CustomResourceValidation; selectableFields []SelectableField; served! bool
  storage! bool; subresources *CustomResourceSubresources

CustomResourceColumnDefinition
  name! string; type! string; description string; format string; jsonPath! string; priority int32

CustomResourceValidation
  openAPIV3Schema any

SelectableField
  jsonPath! string

CustomResourceSubresources
  scale *CustomResourceSubresourceScale; status any

CustomResourceSubresourceScale
  labelSelectorPath *string; specReplicasPath! string; statusReplicasPath! string

CustomResourceDefinitionStatus
  acceptedNames CustomResourceDefinitionNames; conditions [type]CustomResourceDefinitionCondition ~-
  observedGeneration int64; storedVersions []string

CustomResourceDefinitionCondition
  type! string; lastTransitionTime time; message string; observedGeneration int64; reason string; status! string

APIService kind -- Where a group and version is served.
  spec APIServiceSpec -- The service and its order.
  status APIServiceStatus -- Whether it is available.

APIServiceSpec
  caBundle bytes; group string; groupPriorityMinimum! int32; insecureSkipTLSVerify bool
  service *APIServiceReference; version string; versionPriority! int32

APIServiceReference
  name string; namespace string; port *int32 = 443

APIServiceStatus
  conditions [type]APIServiceCondition ~-

APIServiceCondition
  type! string; lastTransitionTime time; message string; reason string; status! string

SelfSubjectAccessReview kind -- Asks whether the asker may do something.
  spec! SelfSubjectAccessReviewSpec -- The question.
  status SubjectAccessReviewStatus -- The answer.

SelfSubjectAccessReviewSpec
  nonResourceAttributes *NonResourceAttributes; resourceAttributes *ResourceAttributes

NonResourceAttributes
  path string; verb string

ResourceAttributes
  name string; fieldSelector *FieldSelectorAttributes; group string; labelSelector *LabelSelectorAttributes
  namespace string; resource string; subresource string; verb string; version string

FieldSelectorAttributes
  rawSelector string; requirements []FieldSelectorRequirement

FieldSelectorRequirement
  key! string; operator! string; values []string

LabelSelectorAttributes
  rawSelector string; requirements []LabelSelectorRequirement

SubjectAccessReviewStatus
  allowed! bool; denied bool; evaluationError string; reason string

SubjectAccessReview kind -- Asks whether somebody may do something.
  spec! SubjectAccessReviewSpec -- The question.
  status SubjectAccessReviewStatus -- The answer.

SubjectAccessReviewSpec
  extra {}[]string; groups []string; nonResourceAttributes *NonResourceAttributes
  resourceAttributes *ResourceAttributes; uid string; user string

LocalSubjectAccessReview kind -- Asks whether somebody may do something in a namespace.
  spec! SubjectAccessReviewSpec -- The question.
  status SubjectAccessReviewStatus -- The answer.

SelfSubjectRulesReview kind -- Asks what the asker may do in a namespace.
  spec! SelfSubjectRulesReviewSpec -- The question.
  status SubjectRulesReviewStatus -- The answer.

SelfSubjectRulesReviewSpec
  namespace string

SubjectRulesReviewStatus
  evaluationError string; incomplete! bool; nonResourceRules! []NonResourceRule; resourceRules! []ResourceRule

NonResourceRule
  nonResourceURLs []string; verbs! []string

ResourceRule
  apiGroups []string; resourceNames []string; resources []string; verbs! []string

TokenReview kind -- Asks whose token it is.
  spec! TokenReviewSpec -- The question.
  status TokenReviewStatus -- The answer.

TokenReviewSpec
  audiences []string; token! string

TokenReviewStatus
  audiences []string; authenticated bool; error string; user UserInfo

UserInfo
  extra {}[]string; groups []string; uid string; username string

SelfSubjectReview kind -- Asks who the asker is.
  status SelfSubjectReviewStatus -- The answer.

SelfSubjectReviewStatus
  userInfo UserInfo
"""
