"""Manifests: reading them with the place of every field, and printing CustomResourceDefinitions."""
