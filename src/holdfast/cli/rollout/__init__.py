"""``holdfast rollout``: show, plan and steer the rollout of any object that an operator rolls out."""
