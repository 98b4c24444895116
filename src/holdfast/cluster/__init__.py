"""The embedded cluster beside the API server: controllers, a scheduler and nodes."""
