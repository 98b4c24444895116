"""DynamoGraphDeployments: components that serve a model, as one PodCliqueSet and Services."""
