"""The numbers of fields in protocol buffers: autoscaling, disruption, roles, webhooks, definitions and reviews.

Written in the notation of `numbers`; facts alone, no behaviour.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
HorizontalPodAutoscaler metadata 1 spec 2 status 3
HorizontalPodAutoscalerSpec scaleTargetRef 1 minReplicas 2 maxReplicas 3 metrics 4 behavior 5
HorizontalPodAutoscalerBehavior scaleUp 1 scaleDown 2
HPAScalingRules selectPolicy 1 policies 2 stabilizationWindowSeconds 3 tolerance 4
HPAScalingPolicy type 1 value 2 periodSeconds 3
MetricSpec type 1 object 2 pods 3 resource 4 external 5 containerResource 7
ContainerResourceMetricSource name 1 target 2 container 3
MetricTarget type 1 value 2 averageValue 3 averageUtilization 4
ExternalMetricSource metric 1 target 2
MetricIdentifier name 1 selector 2
ObjectMetricSource describedObject 1 target 2 metric 3
CrossVersionObjectReference kind 1 name 2 apiVersion 3
PodsMetricSource metric 1 target 2
ResourceMetricSource name 1 target 2
HorizontalPodAutoscalerStatus observedGeneration 1 lastScaleTime 2 currentReplicas 3 desiredReplicas 4
  currentMetrics 5 conditions 6
HorizontalPodAutoscalerCondition type 1 status 2 lastTransitionTime 3 reason 4 message 5
MetricStatus type 1 object 2 pods 3 resource 4 external 5 containerResource 7
ContainerResourceMetricStatus name 1 current 2 container 3
MetricValueStatus value 1 averageValue 2 averageUtilization 3
ExternalMetricStatus metric 1 current 2
ObjectMetricStatus metric 1 current 2 describedObject 3
PodsMetricStatus metric 1 current 2
ResourceMetricStatus name 1 current 2
HorizontalPodAutoscalerV1 metadata 1 spec 2 status 3
HorizontalPodAutoscalerSpecV1 scaleTargetRef 1 minReplicas 2 maxReplicas 3 targetCPUUtilizationPercentage 4
HorizontalPodAutoscalerStatusV1 observedGeneration 1 lastScaleTime 2 currentReplicas 3 desiredReplicas 4
  currentCPUUtilizationPercentage 5
PodDisruptionBudget metadata 1 spec 2 status 3
PodDisruptionBudgetSpec minAvailable 1 selector 2 maxUnavailable 3 unhealthyPodEvictionPolicy 4
PodDisruptionBudgetStatus observedGeneration 1 disruptedPods 2 disruptionsAllowed 3 currentHealthy 4
  desiredHealthy 5 expectedPods 6 conditions 7
Role metadata 1 rules 2
PolicyRule verbs 1 apiGroups 2 resources 3 resourceNames 4 nonResourceURLs 5
RoleBinding metadata 1 subjects 2 roleRef 3
RoleRef apiGroup 1 kind 2 name 3
Subject kind 1 apiGroup 2 name 3 namespace 4
ClusterRole metadata 1 rules 2 aggregationRule 3
AggregationRule clusterRoleSelectors 1
ClusterRoleBinding metadata 1 subjects 2 roleRef 3
ValidatingWebhookConfiguration metadata 1 webhooks 2
ValidatingWebhook name 1 clientConfig 2 rules 3 failurePolicy 4 namespaceSelector 5 sideEffects 6
  timeoutSeconds 7 admissionReviewVersions 8 matchPolicy 9 objectSelector 10 matchConditions 11
WebhookClientConfig service 1 caBundle 2 url 3
ServiceReference namespace 1 name 2 path 3 port 4
MatchCondition name 1 expression 2
RuleWithOperations operations 1
RuleWithOperations/2 apiGroups 1 apiVersions 2 resources 3 scope 4
MutatingWebhookConfiguration metadata 1 webhooks 2
MutatingWebhook name 1 clientConfig 2 rules 3 failurePolicy 4 namespaceSelector 5 sideEffects 6 timeoutSeconds 7
  admissionReviewVersions 8 matchPolicy 9 reinvocationPolicy 10 objectSelector 11 matchConditions 12
CustomResourceDefinition metadata 1 spec 2 status 3
CustomResourceDefinitionSpec group 1 names 3 scope 4 versions 7 conversion 9 preserveUnknownFields 10
CustomResourceConversion strategy 1 webhook 2
WebhookConversion clientConfig 2 conversionReviewVersions 3
ConversionClientConfig service 1 caBundle 2 url 3
ConversionServiceReference namespace 1 name 2 path 3 port 4
CustomResourceDefinitionNames plural 1 singular 2 shortNames 3 kind 4 listKind 5 categories 6
CustomResourceDefinitionVersion name 1 served 2 storage 3 schema 4 subresources 5 additionalPrinterColumns 6
  deprecated 7 deprecationWarning 8 selectableFields 9
CustomResourceColumnDefinition name 1 type 2 format 3 description 4 priority 5 jsonPath 6
CustomResourceValidation openAPIV3Schema 1
SelectableField jsonPath 1
CustomResourceSubresources status 1 scale 2
CustomResourceSubresourceScale specReplicasPath 1 statusReplicasPath 2 labelSelectorPath 3
CustomResourceDefinitionStatus conditions 1 acceptedNames 2 storedVersions 3 observedGeneration 4
CustomResourceDefinitionCondition type 1 status 2 lastTransitionTime 3 reason 4 message 5 observedGeneration 6
APIService metadata 1 spec 2 status 3
APIServiceSpec service 1 group 2 version 3 insecureSkipTLSVerify 4 caBundle 5 groupPriorityMinimum 7
  versionPriority 8
APIServiceReference namespace 1 name 2 port 3
APIServiceStatus conditions 1
APIServiceCondition type 1 status 2 lastTransitionTime 3 reason 4 message 5
SelfSubjectAccessReview metadata 1 spec 2 status 3
SelfSubjectAccessReviewSpec resourceAttributes 1 nonResourceAttributes 2
NonResourceAttributes path 1 verb 2
ResourceAttributes namespace 1 verb 2 group 3 version 4 resource 5 subresource 6 name 7 fieldSelector 8
  labelSelector 9
FieldSelectorAttributes rawSelector 1 requirements 2
FieldSelectorRequirement key 1 operator 2 values 3
LabelSelectorAttributes rawSelector 1 requirements 2
SubjectAccessReviewStatus allowed 1 reason 2 evaluationError 3 denied 4
SubjectAccessReview metadata 1 spec 2 status 3
SubjectAccessReviewSpec resourceAttributes 1 nonResourceAttributes 2 user 3 groups 4 extra 5 uid 6
LocalSubjectAccessReview metadata 1 spec 2 status 3
SelfSubjectRulesReview metadata 1 spec 2 status 3
SelfSubjectRulesReviewSpec namespace 1
SubjectRulesReviewStatus resourceRules 1 nonResourceRules 2 incomplete 3 evaluationError 4
NonResourceRule verbs 1 nonResourceURLs 2
ResourceRule verbs 1 apiGroups 2 resources 3 resourceNames 4
TokenReview metadata 1 spec 2 status 3
TokenReviewSpec token 1 audiences 2
TokenReviewStatus authenticated 1 user 2 error 3 audiences 4
UserInfo username 1 uid 2 groups 3 extra 4
SelfSubjectReview metadata 1 status 2
SelfSubjectReviewStatus userInfo 1
"""
