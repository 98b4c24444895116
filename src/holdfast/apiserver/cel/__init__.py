"""CEL expressions in schemas, webhooks and admission policies.

rules       compiles and evaluates ``x-kubernetes-validations``
admission   evaluates the expressions of admission policies
types       OpenAPI schemas as CEL types
library     declarations of Kubernetes' CEL functions
functions   their implementations
"""
