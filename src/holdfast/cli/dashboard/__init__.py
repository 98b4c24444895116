"""``holdfast dashboard``: the web pages of any cluster; ``holdfast up`` serves them too."""
