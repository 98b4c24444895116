"""The numbers of fields in protocol buffers: what every object has, of options and of schemas in definitions.

Written in the notation of `numbers`; facts alone, no behaviour.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
ObjectMeta name 1 generateName 2 namespace 3 selfLink 4 uid 5 resourceVersion 6 generation 7 creationTimestamp 8
  deletionTimestamp 9 deletionGracePeriodSeconds 10 labels 11 annotations 12 ownerReferences 13 finalizers 14
  managedFields 17
ManagedFieldsEntry manager 1 operation 2 apiVersion 3 time 4 fieldsType 6 fieldsV1 7 subresource 8
OwnerReference kind 1 name 3 uid 4 apiVersion 5 controller 6 blockOwnerDeletion 7
LabelSelector matchLabels 1 matchExpressions 2
LabelSelectorRequirement key 1 operator 2 values 3
ObjectReference kind 1 namespace 2 name 3 uid 4 apiVersion 5 resourceVersion 6 fieldPath 7
LocalObjectReference name 1
Condition type 1 status 2 observedGeneration 3 lastTransitionTime 4 reason 5 message 6
SecretReference name 1 namespace 2
TypedLocalObjectReference apiGroup 1 kind 2 name 3
TypedObjectReference apiGroup 1 kind 2 name 3 namespace 4
NodeSelector nodeSelectorTerms 1
NodeSelectorTerm matchExpressions 1 matchFields 2
NodeSelectorRequirement key 1 operator 2 values 3
ListMeta selfLink 1 resourceVersion 2 continue 3 remainingItemCount 4
Status metadata 1 status 2 message 3 reason 4 details 5 code 6
StatusDetails name 1 group 2 kind 3 causes 4 retryAfterSeconds 5 uid 6
StatusCause reason 1 message 2 field 3
DeleteOptions gracePeriodSeconds 1 preconditions 2 orphanDependents 3 propagationPolicy 4 dryRun 5
Preconditions uid 1 resourceVersion 2
Scale metadata 1 spec 2 status 3
ScaleSpec replicas 1
ScaleStatus replicas 1 selector 2
Eviction metadata 1 deleteOptions 2
Binding metadata 1 target 2
TokenRequest metadata 1 spec 2 status 3
TokenRequestSpec audiences 1 boundObjectRef 3 expirationSeconds 4
BoundObjectReference kind 1 apiVersion 2 name 3 uid 4
TokenRequestStatus token 1 expirationTimestamp 2
CustomResourceSubresourceStatus
JSONSchemaProps id 1 $schema 2 $ref 3 description 4 type 5 format 6 title 7 default 8 maximum 9
  exclusiveMaximum 10 minimum 11 exclusiveMinimum 12 maxLength 13 minLength 14 pattern 15 maxItems 16
  minItems 17 uniqueItems 18 multipleOf 19 enum 20 maxProperties 21 minProperties 22 required 23 items 24
  allOf 25 oneOf 26 anyOf 27 not 28 properties 29 additionalProperties 30 patternProperties 31 dependencies 32
  additionalItems 33 definitions 34 externalDocs 35 example 36 nullable 37
  x-kubernetes-preserve-unknown-fields 38 x-kubernetes-embedded-resource 39 x-kubernetes-int-or-string 40
  x-kubernetes-list-map-keys 41 x-kubernetes-list-type 42 x-kubernetes-map-type 43 x-kubernetes-validations 44
JSONSchemaPropsOrArray = schema 1 jSONSchemas 2
JSONSchemaPropsOrBool = allows 1 schema 2
JSONSchemaPropsOrStringArray = schema 1 property 2
ExternalDocumentation description 1 url 2
ValidationRule rule 1 message 2 messageExpression 3 reason 4 fieldPath 5 optionalOldSelf 6
ListOptions labelSelector 1 fieldSelector 2 watch 3 resourceVersion 4 timeoutSeconds 5 limit 7 continue 8
  allowWatchBookmarks 9 resourceVersionMatch 10 sendInitialEvents 11
"""
