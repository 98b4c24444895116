"""Discovery and OpenAPI: the documents by which clients learn what the server has."""
