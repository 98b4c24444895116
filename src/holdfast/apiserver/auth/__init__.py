"""Authentication and authorization.

authentication   the user of a request: client certificate, admin token, service account token, or anonymous
tokens           service account tokens (JWT)
certificates     the certificate authority and the serving certificate
identity         the keys, certificates and tokens that a server keeps in its data directory
rbac             evaluates roles and role bindings
escalation       refuses to grant permissions that the user does not have
default_roles    the roles and bindings of a new cluster
reviews          TokenReview, SubjectAccessReview and their relatives
"""
