"""Manifests: reading them with the place of every field, the examples, and printing CustomResourceDefinitions."""
