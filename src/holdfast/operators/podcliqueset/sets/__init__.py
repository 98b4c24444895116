"""PodCliqueSets: replicas, each a gang, which are updated one at a time."""
