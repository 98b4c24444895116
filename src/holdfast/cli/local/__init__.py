"""The embedded cluster: up, down, demo, chaos, apiserver."""
