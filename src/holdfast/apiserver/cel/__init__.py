"""CEL expressions in schemas and webhooks.

rules       compiles and evaluates ``x-kubernetes-validations``
types       OpenAPI schemas as CEL types
library     declarations of Kubernetes' CEL functions
functions   their implementations
"""
