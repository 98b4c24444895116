"""What the cluster does about nodes: heartbeats, taints, evictions."""
