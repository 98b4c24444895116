"""DynamoModels: the pods that serve a model, found by the Services of its components."""
