"""What a bare API server lacks of a cluster: controllers, a scheduler and nodes, for the embedded mode."""
