"""The verbs of a VirtualMachine, and the commands of ``holdfast vm``: what each of them sets or shows.  Pure."""

from __future__ import annotations

from typing import Final

from holdfast.client.objects import Object
from holdfast.kinds.virtrigaud import VirtualMachine
from holdfast.kinds.virtrigaud.machines import PowerState, VirtualMachineStatus
from holdfast.meta import times
from holdfast.operators import pausing
from holdfast.operators.commands import CommandGroup, ObjectCommand, Shown
from holdfast.operators.rollouts import Already, Answer, Case, Change, Refusal, RolloutKind
from holdfast.operators.virtualmachine import names, view
from holdfast.operators.virtualmachine.resources import MACHINES
from holdfast.views.descriptions import StatusTable


def pause(case: Case) -> Answer:
    notes = ("a task of the provider that is under way goes on",) if _status(case.object).operation else ()
    return pausing.pause(case, *notes)


def restart(case: Case) -> Answer:
    now = times.format(case.now)
    if case.object.meta.annotations.get(names.REBOOT) == now:
        return Already("already restarted this second")
    if _status(case.object).power_state is PowerState.OFF:
        return Refusal("the machine is off", "start it with spec.powerState On")
    return Change({"metadata": {"annotations": {names.REBOOT: now}}}, "restarted")


_IN_PLACE: Final = Refusal(
    "a machine is changed in place: it has no revisions, and no steps that wait for a promotion",
    "apply the manifest that you want; 'status' shows what is being done",
)


ROLLOUT: Final = RolloutKind(
    resource=MACHINES,
    parts=(),
    selector=lambda obj: "",
    fresh=view.fresh,
    standing=view.standing,
    tree=view.tree,
    headline=view.headline,
    tables=(
        StatusTable(title="Operation", field="operation", rows=view.operations),
        StatusTable(title="Placement", field="placement", rows=view.placement),
    ),
    verbs={"pause": pause, "resume": pausing.resume, "restart": restart},
    unsupported=dict.fromkeys(("promote", "abort", "retry", "undo", "history", "plan"), _IN_PLACE),
)


# --- holdfast vm


def _status(obj: Object) -> VirtualMachineStatus:
    return obj.decode(VirtualMachine).status or VirtualMachineStatus()


def console(obj: Object, argument: str) -> Shown | Answer:
    url = _status(obj).console_url
    if url:
        return Shown(url)
    hint = (
        "start it with 'holdfast vm power on NAME'" if _status(obj).power_state is PowerState.OFF else "see its status"
    )
    return Refusal("the machine has no console", hint)


def ip(obj: Object, argument: str) -> Shown | Answer:
    found = _status(obj).ips
    if found:
        return Shown("\n".join(found))
    return Refusal("no address of the machine is known", "its guest reports addresses once it runs; see its status")


_POWER: Final = {"on": PowerState.ON, "off": PowerState.OFF, "shutdown": PowerState.OFF_GRACEFUL}


def power(obj: Object, argument: str) -> Shown | Answer:
    if argument == "reboot":
        # The version of the object makes each request another one.
        return Change({"metadata": {"annotations": {names.REBOOT: obj.version}}}, "is rebooted")
    wanted = _POWER[argument]
    hold = obj.meta.annotations.get(names.MIGRATION_HOLD)
    if hold and wanted is PowerState.ON:
        return Refusal(
            f"VMMigration {hold.partition('/')[0]} keeps the machine off, because its target may run",
            f"see that the target is off, and release it with 'holdfast vm release {obj.key.name}'",
        )
    if obj.decode(VirtualMachine).spec.power_state is wanted:
        return Already(f"has spec.powerState {wanted.value} already")
    return Change({"spec": {"powerState": wanted.value}}, f"gets spec.powerState {wanted.value}")


def release(obj: Object, argument: str) -> Shown | Answer:
    hold = obj.meta.annotations.get(names.MIGRATION_HOLD)
    if not hold:
        return Already("is not kept off by a migration")
    by = hold.partition("/")[0]
    notes = (f"if VMMigration {by} is under way, it stops the machine again", "the target must not run beside it")
    patch = {"metadata": {"annotations": {names.MIGRATION_HOLD: None}}}
    return Change(patch, f"is no longer kept off by VMMigration {by}", notes)


GROUP: Final = CommandGroup(
    resource=MACHINES,
    commands=(
        ObjectCommand(name="console", summary="Print the URL of the console of a machine.", answer=console),
        ObjectCommand(
            name="power",
            summary="Start, stop, shut down or reboot a machine.",
            answer=power,
            argument="STATE",
            choices=(*_POWER, "reboot"),
        ),
        ObjectCommand(name="ip", summary="Print the addresses of a machine.", answer=ip),
        ObjectCommand(name="release", summary="Let a machine run again that a migration keeps off.", answer=release),
    ),
)
"""The commands of ``holdfast vm``."""
