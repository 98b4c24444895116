"""The types of the built-in kinds, read from ``builtins/data``.

notation    the notation of types, and the OpenAPI schemas that are made of it (list types, merge keys, defaults)
numbers     the notation of the numbers that fields have in protocol buffers
library     the loader: all types and all numbers
decoding    brings an object into the form in which a typed server of Kubernetes stores it
"""
