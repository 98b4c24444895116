"""PodCliqueScalingGroups: PodCliques that are created, replaced and scaled together."""
