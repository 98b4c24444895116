"""VMSets: several machines from one template, rolled out by the engine."""
