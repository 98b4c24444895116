"""Discovery and OpenAPI: the documents by which clients learn what the server has.

discovery   groups, versions and resources, as single documents and aggregated
v3          OpenAPI v3 per group version, and OpenAPI v2
v2          converts a v3 document to v2
protobuf    OpenAPI v2 in protocol buffers
paths       the operations of each resource
schemas     the components: one schema per type
documents   caching and ETags
"""
