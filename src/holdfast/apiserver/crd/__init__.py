"""CustomResourceDefinitions: their checks, and the resource types that they define."""
