"""``holdfast operator``: run the operators on any Kubernetes, and install what they need."""
