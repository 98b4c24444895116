"""Admission webhooks.

dispatch     which webhooks are called, in which order, and what follows from their responses
matching     rules and selectors against a request
conditions   match conditions (CEL)
services     the address of the service of a webhook
calls        the AdmissionReview over HTTPS
"""
