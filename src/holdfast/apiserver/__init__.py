"""The embedded Kubernetes API server: the API of a real one, on SQLite, in one process.

Its core is ``async handle(Request) -> Response``, without any HTTP library; a
socket adapter and the in-process client are two ways to call it.  It learns
kinds from definitions, as any API server does, and must not know Holdfast's
own kinds, operators or runtime.
"""
