"""CustomResourceDefinitions.

registry         serves the kinds of the stored definitions, and finalizes deleted ones
resource_types   the status of a definition, and the resource types that it defines
checks           validation of definitions, in the words of Kubernetes
patterns         regular expressions of schemas and rules (RE2)
"""
