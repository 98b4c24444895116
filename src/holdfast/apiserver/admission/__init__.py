"""Admission: checks and completes an object before it is stored.

checks              the namespace exists; no privilege escalation
policies            ValidatingAdmissionPolicies
runtime_classes     pods that run as processes of the host
service_addresses   cluster IPs and node ports
webhooks/           admission webhooks
"""
