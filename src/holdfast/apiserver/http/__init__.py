"""The HTTP side of the server.

listener      HTTP/1.1 over TLS on a socket
gate          authentication, impersonation, authorization, fairness, metrics and the access log, for every request
fairness      how many requests run at once, and in which order the others wait
metrics       Prometheus metrics
bodies        request bodies: JSON, YAML and protocol buffers into objects
messages      which protocol buffer messages clients may send
protobuf      the wire format of Kubernetes' protocol buffers
options       query parameters and DeleteOptions
negotiation   the content type of a response
refusals      errors as responses
"""
