"""Pure vocabulary of Kubernetes: keys, selectors, quantities, patches, times, errors."""
