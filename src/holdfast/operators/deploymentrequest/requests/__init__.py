"""DynamoGraphDeploymentRequests: a model is profiled, and the deployment that was found is created."""
