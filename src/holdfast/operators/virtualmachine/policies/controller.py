"""The controller of VMPlacementPolicies, which counts what they place and finds rules that conflict."""

from __future__ import annotations

from typing import Any, Final

from holdfast.client.resources import NAMESPACES
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, policy_matters
from holdfast.operators.virtualmachine.placement.observe import labels_matter
from holdfast.operators.virtualmachine.policies import decide, observe
from holdfast.operators.virtualmachine.resources import MACHINES, POLICIES, PROVIDERS
from holdfast.operators.virtualmachine.watches import LATER, SOON, of_provider
from holdfast.runtime.controllers import Controller, Watch
from holdfast.runtime.status import Invalid

CONTROLLER: Final[Controller[Any]] = Controller(
    name="vmplacementpolicy",
    resource=POLICIES,
    # Its own status brings no pass: one while machines come and go would count them again at once.
    matters=policy_matters,
    watches=(
        Watch(
            resource=MACHINES,
            keys=observe.of_machine,
            matters=observe.machine_matters,
            within=LATER,
        ),
        Watch(
            resource=MACHINES,
            keys=observe.others_of_machine,
            matters=observe.member_matters,
            within=LATER,
        ),
        Watch(
            resource=PROVIDERS,
            keys=of_provider(observe.of_machine),
            matters=observe.provider_matters,
        ),
        Watch(resource=POLICIES, keys=observe.siblings_of, matters=policy_matters, within=SOON),
        Watch(resource=NAMESPACES, keys=observe.of_namespace, matters=labels_matter),
    ),
    indexes=(REFERENCES.index,),
    observe=observe.observe,
    decide=decide.decide,
    invalid=Invalid(conditions={"Ready": False, "Validated": False}),
)
