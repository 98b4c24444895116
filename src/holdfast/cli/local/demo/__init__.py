"""``holdfast demo``: rollouts of several systems under their floors."""
