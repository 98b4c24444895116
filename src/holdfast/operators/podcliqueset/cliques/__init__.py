"""PodCliques: pods of one role."""
