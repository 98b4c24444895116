"""The security settings of a Workload: users, capabilities, profiles and file groups."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from holdfast.kinds.model import Model, Rule, api

_ID = Annotated[int, api(ge=0, le=2**31 - 1, format="int64")]
"""The number of a user or a group."""


class SecurityProfile(Model):
    """A seccomp or AppArmor profile that limits what a process may do."""

    RULES: ClassVar = (
        Rule(
            rule="(self.type == 'Localhost') == has(self.localhostProfile)",
            message="localhostProfile is needed for the type Localhost, and only there",
        ),
    )

    type: Annotated[
        Literal["RuntimeDefault", "Localhost", "Unconfined"],
        api("RuntimeDefault: the profile of the container runtime. Localhost: one of the node. Unconfined: none."),
    ]
    localhost_profile: (
        Annotated[str, api("The name of the profile on the node.", min_length=1, max_length=4096)] | None
    ) = None


class SELinuxOptions(Model):
    """The SELinux label of the processes."""

    user: Annotated[str, api("The user of the label.")] | None = None
    role: Annotated[str, api("The role of the label.")] | None = None
    type: Annotated[str, api("The type of the label.")] | None = None
    level: Annotated[str, api("The level of the label.")] | None = None


class Capabilities(Model):
    """Capabilities of the kernel that a container gets in addition, or loses."""

    add: Annotated[tuple[str, ...], api("Capabilities to add, such as NET_BIND_SERVICE.", list_type="atomic")] = ()
    drop: Annotated[tuple[str, ...], api("Capabilities to drop; ALL drops every one.", list_type="atomic")] = ()


class ContainerSecurityContext(Model):
    """The security settings of one container."""

    RULES: ClassVar = (
        Rule(
            rule=(
                "!(has(self.privileged) && self.privileged && has(self.allowPrivilegeEscalation)"
                " && !self.allowPrivilegeEscalation)"
            ),
            message="a privileged container can always escalate: allowPrivilegeEscalation cannot be false",
        ),
        Rule(
            rule="!(has(self.runAsNonRoot) && self.runAsNonRoot && has(self.runAsUser) && self.runAsUser == 0)",
            message="runAsUser 0 is root, and runAsNonRoot refuses root: no container could start",
        ),
    )

    run_as_user: Annotated[_ID, api("The user that processes run as; the image's when absent.")] | None = None
    run_as_group: Annotated[_ID, api("The group that processes run as; the runtime's default when absent.")] | None = (
        None
    )
    run_as_non_root: Annotated[bool, api("Whether a container that would run as root is not started.")] | None = None
    privileged: Annotated[bool, api("Whether the container has all permissions on the node.")] | None = None
    allow_privilege_escalation: (
        Annotated[bool, api("Whether a process may gain more permissions than its parent.")] | None
    ) = None
    read_only_root_filesystem: Annotated[bool, api("Whether the root filesystem is read-only.")] | None = None
    capabilities: Annotated[Capabilities, api("Capabilities to add and to drop.")] | None = None
    seccomp_profile: Annotated[SecurityProfile, api("The system calls that are allowed.")] | None = None
    app_armor_profile: Annotated[SecurityProfile, api("The AppArmor profile.")] | None = None
    se_linux_options: Annotated[SELinuxOptions, api("The SELinux label.")] | None = msgspec.field(
        default=None, name="seLinuxOptions"
    )


class SecurityContext(ContainerSecurityContext):
    """The security settings of a replica.

    Users, groups and profiles apply to all containers; privileged, allowPrivilegeEscalation, readOnlyRootFilesystem and
    capabilities to the main container.
    """

    fs_group: Annotated[_ID, api("The group that owns the files of volumes.")] | None = None
    fs_group_change_policy: (
        Annotated[Literal["OnRootMismatch", "Always"], api("When the group of files is changed.")] | None
    ) = None
    supplemental_groups: Annotated[
        tuple[_ID, ...], api("More groups of the processes.", max_length=64, list_type="atomic")
    ] = ()
    sysctls: Annotated[dict[str, str], api("Kernel parameters of the replica, by name.", max_length=64)] = {}
