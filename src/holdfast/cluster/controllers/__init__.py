"""The controllers of Kubernetes' own kinds, as kube-controller-manager runs them."""
