"""PodGangs: the pods of several PodCliques that are scheduled together."""
