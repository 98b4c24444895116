"""A cluster on this machine.

apiserver  an API server alone, and the kubeconfig that it writes
cluster    an API server with controllers, nodes and operators: start it, stop it, inject faults
data       what a cluster has on the disk: check it, back it up, restore it
demo       rollouts of several systems on a cluster of their own
"""
