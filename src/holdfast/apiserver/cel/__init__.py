"""CEL rules of schemas and webhooks: types, Kubernetes' function libraries, evaluation."""
