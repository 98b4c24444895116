"""Server-side apply.

server_side   applies a configuration, and tracks managedFields for every other write
fieldsets     sets of fields (FieldsV1) and their algebra
ownership     which fields a schema divides an object into
merging       merges a configuration into an object, and removes fields that are no longer applied
"""
