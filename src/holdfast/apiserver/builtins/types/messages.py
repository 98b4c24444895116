"""Types that only messages have: what JSON leaves open, protocol buffers spell out.

Written in the notation of `notation`; where another text has a type of the same
name, this one says how it travels.  Facts alone, no behaviour.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
CustomResourceValidation
  openAPIV3Schema *JSONSchemaProps

CustomResourceSubresources
  scale *CustomResourceSubresourceScale; status *CustomResourceSubresourceStatus

CustomResourceSubresourceStatus

JSONSchemaProps -- A schema within a definition.
  id string; $schema string; $ref *string; description string; type string; format string; title string
  default *json; maximum *number; exclusiveMaximum bool; minimum *number; exclusiveMinimum bool
  maxLength *int64; minLength *int64; pattern string; maxItems *int64; minItems *int64; uniqueItems bool
  multipleOf *number; enum []json; maxProperties *int64; minProperties *int64; required []string
  items *JSONSchemaPropsOrArray; allOf []JSONSchemaProps; oneOf []JSONSchemaProps; anyOf []JSONSchemaProps
  not *JSONSchemaProps; properties {}JSONSchemaProps; additionalProperties *JSONSchemaPropsOrBool
  patternProperties {}JSONSchemaProps; dependencies {}JSONSchemaPropsOrStringArray
  additionalItems *JSONSchemaPropsOrBool; definitions {}JSONSchemaProps; externalDocs *ExternalDocumentation
  example *json; nullable bool; x-kubernetes-preserve-unknown-fields *bool; x-kubernetes-embedded-resource bool
  x-kubernetes-int-or-string bool; x-kubernetes-list-map-keys []string; x-kubernetes-list-type *string
  x-kubernetes-map-type *string; x-kubernetes-validations []ValidationRule

JSONSchemaPropsOrArray
  schema *JSONSchemaProps; jSONSchemas []JSONSchemaProps

JSONSchemaPropsOrBool
  allows! bool; schema *JSONSchemaProps

JSONSchemaPropsOrStringArray
  schema *JSONSchemaProps; property []string

ExternalDocumentation
  description string; url string

ValidationRule
  rule! string; fieldPath string; message string; messageExpression string; optionalOldSelf *bool; reason *string

ListOptions -- What a list or a watch is about.
  allowWatchBookmarks bool; continue string; fieldSelector string; labelSelector string; limit int64
  resourceVersion string; resourceVersionMatch string; sendInitialEvents *bool; timeoutSeconds *int64; watch bool
"""
