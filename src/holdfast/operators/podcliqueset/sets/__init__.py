"""PodCliqueSets: replicas, each a gang, and the update that goes through them one at a time."""
