"""The embedded Kubernetes API server: the Kubernetes API on SQLite, in one process.

A request passes through the folders in this order::

    http/         listener (sockets, TLS) and gate (authentication, authorization, fairness, metrics)
    auth/         the user of a request, and what RBAC allows them
    verbs/        get, list, watch, create, update, patch, delete, subresources
    admission/    server-side admission checks and admission webhooks
    apply/        server-side apply and managedFields
    storage/      committed objects, the log on disk, the history that watches read

Which resources are served::

    resources     ResourceType, and the registry of those that are served now
    builtins/     the built-in kinds
    crd/, cel/    kinds that CustomResourceDefinitions define, and their validation rules
    openapi/      discovery and OpenAPI documents of all of them

`server` assembles these parts, `routes` parses the path of a request.  The core is ``async handle(Request) ->
Response`` without any HTTP library; the listener and the in-process client are two ways to call it.  The server
learns custom kinds from definitions and must not know Holdfast's own kinds, operators or runtime.
"""
