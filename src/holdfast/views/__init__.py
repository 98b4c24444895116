"""View models: what there is to show of something, as plain values for any renderer."""
