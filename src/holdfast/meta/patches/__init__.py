"""The patch formats of the Kubernetes API, as pure functions on JSON values.

json       JSON Patch (RFC 6902): a list of operations
merge      JSON Merge Patch (RFC 7386): objects are merged, lists replaced, null removes
strategic  strategic merge patch: as merge, and lists are merged by the keys that the schema names

Server-side apply needs field ownership and is part of the API server.
"""
