"""The vocabulary in which kinds are declared: models, field annotations, kinds.

A kind's Python type is the single source of its API: what is decoded, what is
documented and what its CRD says all come from the same declaration.  This
module knows how to *declare*; it must not know any kind, nor how a schema is
generated (`crds`), nor where objects come from.

Conventions every kind follows:

- A field that may be absent is ``Annotated[T, api(...)] | None = None`` (msgspec
  wants bounds on the bare type, so the annotation stands inside); lists and maps are absent
  when empty, so they default to ``()`` and ``{}``.  Python never fills in a
  server-side default: ``api(default=...)`` says what the API server will write,
  so that "unset" and "set to the default" stay different values until then.
- Field names are snake_case in Python and camelCase on the wire; where that
  rule misses (``clusterIP``), the field says ``msgspec.field(name=...)``.
- Objects whose shape is another project's (pod specs, affinities) are
  `OpenObject`: kept whole, never re-typed, never pruned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Annotated, Any, ClassVar, Final, Literal, dataclass_transform

import msgspec
from msgspec import Meta

from holdfast.kinds.conversion import Conversion

_UNSET: Final[Any] = object()

Reason = Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"]
"""How a broken rule is reported; ``FieldValueInvalid`` when a rule says none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One CEL rule of a schema (``x-kubernetes-validations``)."""

    rule: str
    message: str
    reason: Reason | None = None
    field_path: str | None = None
    message_expression: str | None = None
    optional_old_self: bool | None = None

    def to_schema(self) -> dict[str, Any]:
        out: dict[str, Any] = {"rule": self.rule, "message": self.message}
        if self.message_expression is not None:
            out["messageExpression"] = self.message_expression
        if self.reason is not None:
            out["reason"] = self.reason
        if self.field_path is not None:
            out["fieldPath"] = self.field_path
        if self.optional_old_self is not None:
            out["optionalOldSelf"] = self.optional_old_self
        return out


def immutable(what: str) -> Rule:
    """The rule of a field that may be set once: ``self == oldSelf``."""
    return Rule(rule="self == oldSelf", message=f"{what} is immutable", reason="FieldValueForbidden")


def unchanged(path: str) -> str:
    """The CEL of a field that neither changes nor appears nor vanishes.

    A rule at the field itself (`immutable`) is not asked when the field comes
    or goes; one that stands at its parent is.
    """
    return f"has(self.{path}) == has(oldSelf.{path}) && (!has(self.{path}) || self.{path} == oldSelf.{path})"


def frozen(path: str, message: str | None = None) -> Rule:
    """The rule, at its parent, of a field that may neither change nor appear nor vanish."""
    return Rule(
        rule=unchanged(path),
        message=message or f"{path} is immutable",
        reason="FieldValueForbidden",
        field_path=f".{path}",
    )


def exactly_one(*fields: str) -> Rule:
    """The rule of an object that is one of several things, each a field of its own."""
    *most, last = fields
    given = ", ".join(f"has(self.{field})" for field in fields)
    return Rule(rule=f"[{given}].exists_one(given, given)", message=f"give exactly one of {', '.join(most)} and {last}")


def is_zero(path: str) -> str:
    """The CEL of an `IntOrPercent` that amounts to nothing, however it is written."""
    return f"string({path}).matches('^0+%?$')"


def api(
    description: str | None = None,
    *,
    default: Any = _UNSET,
    format: str | None = None,
    keys: tuple[str, ...] = (),
    list_type: Literal["atomic", "set", "map"] | None = None,
    map_type: Literal["granular", "atomic"] | None = None,
    rules: tuple[Rule, ...] = (),
    ge: int | float | None = None,
    gt: int | float | None = None,
    le: int | float | None = None,
    lt: int | float | None = None,
    pattern: str | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
    **schema: Any,
) -> Meta:
    """What the API says of one field, as a `msgspec.Meta` for ``Annotated``.

    ``description``, bounds and pattern are enforced by msgspec on decode and
    appear in the CRD; everything else appears in the CRD alone.  ``min_length``
    and ``max_length`` mean items for lists and properties for maps.
    ``keys`` makes a list a map keyed by those fields.  Unknown keyword
    arguments are merged into the schema as they are (``nullable=True``).
    """
    extra: dict[str, Any] = dict(schema)
    if default is not _UNSET:
        extra["default"] = default
    if format is not None:
        extra["format"] = format
    if keys:
        extra["x-kubernetes-list-type"] = "map"
        extra["x-kubernetes-list-map-keys"] = list(keys)
    elif list_type is not None:
        extra["x-kubernetes-list-type"] = list_type
    if map_type is not None:
        extra["x-kubernetes-map-type"] = map_type
    if rules:
        extra["x-kubernetes-validations"] = [rule.to_schema() for rule in rules]
    # One mapping, because Meta's overloads admit either numeric bounds or lengths and this takes whichever was given.
    bounds: dict[str, Any] = {
        "ge": ge,
        "gt": gt,
        "le": le,
        "lt": lt,
        "pattern": pattern,
        "min_length": min_length,
        "max_length": max_length,
    }
    return Meta(description=description, extra_json_schema=extra or None, **bounds)


class _ModelType(msgspec.StructMeta):
    """Makes every model keyword-only: msgspec hands on ``frozen`` and ``rename`` to subclasses, but not this."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:
        return super().__new__(mcls, name, bases, namespace, **{"kw_only": True, **config})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class Model(msgspec.Struct, metaclass=_ModelType, rename="camel", omit_defaults=True, frozen=True):
    """A JSON object of a kind.  Its docstring is its schema's description."""

    RULES: ClassVar[tuple[Rule, ...]] = ()
    """CEL rules that concern several fields of this object at once."""


class Spelling(Enum):
    """A string enum that also reads other spellings of its members.

    A subclass lists them in a ``__spellings__`` dict: spelling -> value.  They
    are read, listed in the schema, and never written.
    """

    __spellings__: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def _missing_(cls, value: object) -> Any:
        canonical = cls.__spellings__.get(value) if isinstance(value, str) else None
        return None if canonical is None else cls(canonical)

    def __str__(self) -> str:
        return str(self.value)


OPEN: Final[Mapping[str, Any]] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""The schema of an `OpenObject`, for use inside a schema that is written out by hand."""

OpenObject = Annotated[dict[str, Any], Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})]
"""An object whose fields belong to someone else; nothing in it is dropped."""

IntOrPercent = Annotated[int, Meta(ge=0, le=2**31 - 1)] | Annotated[str, Meta(pattern=r"^[0-9]+%$", max_length=6)]
"""A count, or a percentage of the replicas, such as ``25%``; never below nothing."""

QUANTITY: Final = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
"""The pattern of a `Quantity`."""

Quantity = Annotated[int, Meta(ge=0)] | float | Annotated[str, Meta(pattern=QUANTITY, max_length=64)]
"""A Kubernetes quantity such as ``500m`` or ``1Gi``, never below nothing; int-or-string in schemas."""

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""An RFC 3339 time in whole seconds."""

Duration = Annotated[str, Meta(pattern=r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$")]
"""A Go-style duration such as ``1h30m``."""

PositiveDuration = Annotated[
    Duration,
    # Rules are costed by the longest text there may be, so there is a longest.
    api(max_length=64, rules=(Rule(rule="duration(self) > duration('0s')", message="must be longer than 0s"),)),
]
"""A duration that is not 0."""

Count = Annotated[int, api(ge=0, format="int32")]
"""How many there are of something that is counted one by one: replicas, retries, indices."""

Positive = Annotated[int, api(ge=1, format="int32")]
"""How many there are, where there is at least one."""

Total = Annotated[int, api(ge=0, format="int64")]
"""How much there is of something that outgrows a `Count`: bytes, objects, packets."""

Percentage = Annotated[int, api(ge=0, le=100, format="int32")]

PortNumber = Annotated[int, api(ge=1, le=65535, format="int32")]

Name = Annotated[str, api(min_length=1, max_length=253)]
"""The name of an object, in whatever form its kind allows."""

Label = Annotated[str, api(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
"""A DNS label: what the names of pods, Services and hosts are made of."""

ObservedGeneration = Annotated[Total, api("The generation of the spec that this status describes.")]
"""The ``observedGeneration`` field of every status."""


class ObjectReference(Model):
    """The owner of an object, as `metadata.ownerReferences` names it."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Model):
    """Standard object metadata."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[ObjectReference, ...] = ()
    managed_fields: tuple[OpenObject, ...] = ()
    self_link: str | None = None


class Condition(Model):
    """One observation of an object's state, in Kubernetes' standard form."""

    type: Annotated[
        str,
        api(
            "What is observed, in CamelCase.",
            max_length=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
    ]
    status: Annotated[Literal["True", "False", "Unknown"], api("Whether it is so.")]
    observed_generation: Annotated[Total, api("The generation this was derived from.")] | None = None
    last_transition_time: Annotated[Time, api("When status last changed.")]
    reason: Annotated[
        str,
        api(
            "Why, as one CamelCase word.",
            min_length=1,
            max_length=1024,
            pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        ),
    ]
    message: Annotated[str, api("Why, as a sentence for people; it may be empty.", max_length=32768)]


Conditions = Annotated[tuple[Condition, ...], api("What is observed of this object now.", keys=("type",))]
"""The ``conditions`` field of every status: a list that is a map by type."""


BudgetPolicy = Annotated[
    Literal["Managed", "Unmanaged"],
    api(
        "Whether the operator keeps a PodDisruptionBudget for the floor; with Unmanaged, drains are held by the "
        "budgets that you create, or by none.",
        default="Managed",
    ),
]
"""The ``disruptionBudget`` field of every kind that has a floor."""


class FloorStatus(Model):
    """A floor: how many must be available, how many are, and how many were."""

    required: Annotated[Count, api("How many must be available.")] | None = None
    available: Annotated[Count, api("How many are available.")] | None = None
    most: Annotated[Count, api("The most that were available at once, of those that are desired.")] | None = None
    lowest: Annotated[Count, api("The fewest that were available since the floor was first reached.")] | None = None
    lowered: Annotated[Count, api("By how many the floor lies below minAvailable while an update runs.")] | None = None


class Status(Model):
    """What every status says beside what its kind adds."""

    observed_generation: ObservedGeneration | None = None
    conditions: Conditions = ()


class Resource(Model):
    """What every object of every kind has.  Kinds add ``spec`` and ``status``."""

    api_version: str
    kind: str
    metadata: ObjectMeta


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column of ``kubectl get``; ``path`` is a simple JSONPath."""

    name: str
    path: str
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"
    description: str | None = None
    format: str | None = None
    priority: int = 0


AGE: Final = Column(name="Age", path=".metadata.creationTimestamp", type="date")
"""The column that nearly every kind ends with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Where the scale subresource finds its numbers."""

    spec: str = ".spec.replicas"
    status: str = ".status.replicas"
    selector: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Older:
    """An older version of a kind: it is served where objects of it are converted, and not stored."""

    version: str
    model: type[Resource]
    conversion: Conversion
    columns: tuple[Column, ...] = (AGE,)
    deprecation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of the API: its type and how Kubernetes serves it."""

    model: type[Resource]
    group: str
    version: str
    plural: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ("holdfast",)
    namespaced: bool = True
    columns: tuple[Column, ...] = (AGE,)
    scale: Scale | None = None
    older: Older | None = None

    @property
    def name(self) -> str:
        return self.model.__name__

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    @property
    def crd_name(self) -> str:
        return f"{self.plural}.{self.group}"

    @property
    def versions(self) -> tuple[Kind, ...]:
        """The kind in each of its versions, the one that is stored first."""
        if self.older is None:
            return (self,)
        older = self.older
        return self, replace(self, version=older.version, model=older.model, columns=older.columns, older=None)


@dataclass(frozen=True, slots=True)
class Group:
    """An API group in one version."""

    name: str
    version: str

    def kind(
        self,
        model: type[Resource],
        plural: str,
        *columns: Column,
        short: str,
        scale: Scale | None = None,
        older: Older | None = None,
    ) -> Kind:
        """Declare a kind of the group.  The age is its last column, unless it stands among the columns."""
        return Kind(
            model=model,
            group=self.name,
            version=self.version,
            plural=plural,
            short_names=(short,),
            columns=columns if AGE in columns else (*columns, AGE),
            scale=scale,
            older=older,
        )
