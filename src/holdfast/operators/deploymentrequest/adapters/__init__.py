"""DynamoGraphDeploymentScalingAdapters: the sizes of components, which autoscalers set."""
