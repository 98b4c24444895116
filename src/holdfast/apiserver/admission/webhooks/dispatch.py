"""Dispatch of admission webhooks: which are called, in which order, and what follows from their responses.

`Webhooks.mutate` runs before an object is validated and may change it; `Webhooks.judge` runs after that and may only
refuse.  Writes of webhook configurations call no webhook, or a broken one could never be repaired; nor do the
server's own writes.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from holdfast.apiserver.admission.webhooks import matching
from holdfast.apiserver.admission.webhooks.calls import Answer, CallFailed, Calls, request_of
from holdfast.apiserver.admission.webhooks.matching import Hook, Question
from holdfast.apiserver.admission.webhooks.services import Resolve, resolver
from holdfast.apiserver.http import bodies
from holdfast.apiserver.http.options import META
from holdfast.apiserver.resources import Object, Registry, ResourceType
from holdfast.apiserver.storage.store import Store
from holdfast.apiserver.verbs import metadata, subresources
from holdfast.apiserver.verbs.versions import converted
from holdfast.apiserver.verbs.writes import SERVER, Writing
from holdfast.meta.errors import BadRequest, Forbidden, InternalError, StatusError, from_status
from holdfast.meta.exchange import encode
from holdfast.meta.objects import GVK
from holdfast.meta.patches import json as jsonpatch

GROUP: Final = "admissionregistration.k8s.io"
MUTATING: Final = f"{GROUP}/mutatingwebhookconfigurations"
VALIDATING: Final = f"{GROUP}/validatingwebhookconfigurations"

Reshape = Callable[[ResourceType, Object], None]
"""Prunes and defaults an object in place, as on a write; raises `StatusError`."""

_log: Final = logging.getLogger("holdfast.apiserver.admission.webhooks.dispatch")


class Webhooks:
    """The webhooks of the stored configurations."""

    def __init__(self, store: Store, registry: Registry, *, reshape: Reshape, resolve: Resolve | None = None) -> None:
        self._store = store
        self._registry = registry
        self._reshape = reshape
        self.calls = Calls(resolve or resolver(store))
        self._hooks: dict[str, tuple[int, tuple[Hook, ...]]] = {}

    async def close(self) -> None:
        await self.calls.close()

    async def mutate(
        self, writing: Writing, obj: Object, old: Object | None, operation: str
    ) -> tuple[Object, tuple[str, ...]]:
        """Call the mutating webhooks; returns the object (another one, if they change it) and their warnings."""
        hooks = self._configured(MUTATING, writing)
        if not hooks:
            return obj, ()
        question = question_of(writing, obj, operation)
        shown = seen_object(writing, obj)
        made, said = await self._changed(hooks, question, shown, seen_object(writing, old))
        return (obj if made is shown else _taken(writing, obj, made)), said

    async def judge(self, writing: Writing, obj: Object | None, old: Object | None, operation: str) -> tuple[str, ...]:
        """Call the validating webhooks; returns their warnings if none refuses.  A deletion has no new object."""
        mutating = self._configured(MUTATING, writing) if obj is None else ()
        validating = self._configured(VALIDATING, writing)
        if not mutating and not validating:
            return ()
        subject = obj if obj is not None else old
        assert subject is not None, "a request is about an object"
        question = question_of(writing, subject, operation)
        seen, before = seen_object(writing, obj), seen_object(writing, old)
        said = await self._objections(mutating, question, before)
        concerned = [
            (hook, kind) for hook in validating if (kind := self._concerned(hook, question, seen, before)) is not None
        ]
        answers = await asyncio.gather(
            *(self._answer(hook, question, kind, seen, before, mutating=False) for hook, kind in concerned),
            return_exceptions=True,  # all calls complete; the first refusal in their order is reported
        )
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            said += answer.warnings if answer is not None else ()
        return said

    # Which webhooks are called.

    def _configured(self, resource: str, writing: Writing) -> tuple[Hook, ...]:
        """The webhooks of all configurations of one sort, by name; none for a write that calls no webhooks."""
        if writing.user is SERVER or writing.kind.group == GROUP:
            return ()
        changed = self._store.changed_at(resource)
        known = self._hooks.get(resource)
        if known is None or known[0] != changed:
            entries = self._store.list(resource)
            hooks = tuple(hook for each in entries for hook in matching.read(bodies.read_json(each.value)))
            known = self._hooks[resource] = changed, hooks
        return known[1]

    def _concerned(self, hook: Hook, question: Question, obj: Object | None, old: Object | None) -> ResourceType | None:
        """The version in which the webhook gets the object; None if it is not called."""
        asked = question.kind
        others = (each for each in self._registry if each.key == asked.key and each.gvk != asked.gvk)
        kind = matching.version_for(hook, question, others)
        if kind is None or not matching.selects(hook, question, obj, old, labels_of=self._labels_of):
            return None
        if hook.conditions and not self._conditions_hold(hook, question, kind, obj, old):
            return None
        return kind

    @staticmethod
    def _conditions_hold(
        hook: Hook, question: Question, kind: ResourceType, obj: Object | None, old: Object | None
    ) -> bool:
        """Whether all its conditions hold; a condition that is false decides, even if another one fails."""
        from holdfast.apiserver.admission.webhooks.conditions import (
            ConditionError,
            holds,
        )  # loads the CEL engine only where it is needed

        request = request_of(question, kind, obj, old, uid="")
        values = {"object": request.pop("object"), "oldObject": request.pop("oldObject"), "request": request}
        problems: list[str] = []
        for condition in hook.conditions:
            try:
                if not holds(condition, values):
                    return False
            except ConditionError as error:
                problems.append(str(error))
        if problems and not hook.lenient:
            why = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise Forbidden.of(question.kind.plural, question.name, group=question.kind.group, why=why)
        return not problems

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        entry = self._store.get(matching.NAMESPACES, "", namespace)
        return entry.labels if entry is not None else {}

    # Calling.

    async def _answer(
        self,
        hook: Hook,
        question: Question,
        kind: ResourceType,
        obj: Object | None,
        old: Object | None,
        *,
        mutating: bool,
    ) -> Answer | None:
        """The response of a webhook that allows the request; None if the call failed and its policy is Ignore."""
        if question.dry_run and hook.side_effects:
            raise BadRequest(f'admission webhook "{hook.name}" does not support dry run')
        seen, before = await in_version(question, kind, obj), await in_version(question, kind, old)
        request = request_of(question, kind, seen, before, uid=str(uuid.uuid4()))
        try:
            answer = await self.calls.ask(hook, request, mutating=mutating)
        except CallFailed as error:
            if not hook.lenient:
                raise InternalError.of(f'failed calling webhook "{hook.name}": {error}') from None
            _log.warning("webhook failed open", extra={"fields": {"webhook": hook.name, "why": str(error)}})
            return None
        if not answer.allowed:
            raise denial(hook.name, answer.status)
        return answer

    async def _changed(
        self, hooks: Sequence[Hook], question: Question, obj: Object, old: Object | None
    ) -> tuple[Object, tuple[str, ...]]:
        """Call them in order; then again those with reinvocationPolicy IfNeeded, if the object changed after them."""
        said: tuple[str, ...] = ()
        satisfied: set[Hook] = set()
        again: set[Hook] = set()
        for once_more in (False, True):
            for hook in hooks:
                if once_more and hook not in again:
                    continue
                kind = self._concerned(hook, question, obj, old)
                if kind is None:
                    continue
                answer = await self._answer(hook, question, kind, obj, old, mutating=True)
                if answer is not None:
                    said += answer.warnings
                    made = await self._patched(hook, question, kind, obj, answer)
                    if made is not obj:
                        obj = made
                        again |= satisfied
                        satisfied = set()
                if hook.again:
                    satisfied.add(hook)
        return obj, said

    async def _objections(self, hooks: Sequence[Hook], question: Question, old: Object | None) -> tuple[str, ...]:
        """Call mutating webhooks for a deletion, which has no object to change."""
        said: tuple[str, ...] = ()
        for hook in hooks:
            kind = self._concerned(hook, question, None, old)
            if kind is not None and (answer := await self._answer(hook, question, kind, None, old, mutating=True)):
                if answer.patch:
                    why = "attempted to modify the object, which is not supported for this operation"
                    raise InternalError.of(f'admission webhook "{hook.name}" {why}')
                said += answer.warnings
        return said

    async def _patched(self, hook: Hook, question: Question, kind: ResourceType, obj: Object, answer: Answer) -> Object:
        """The object with the patch of a webhook, pruned and defaulted again; the same object if nothing changed."""
        if not answer.patch:
            return obj
        seen = await in_version(question, kind, obj)
        form = _form(kind, seen)
        try:
            # Encoded and decoded: a patch may put one value in two places, which must not share it.
            made = bodies.read_json(encode(jsonpatch.apply(seen, answer.patch)))
            if jsonpatch.json_equal(made, seen):
                return obj
            if not isinstance(made, dict):
                raise BadRequest("the patch did not produce an object")
            made = bodies.checked_object(made, form)
            if form is kind:
                self._reshape(kind, made)
                made = await _converted(made, kind, question.kind)
        except (jsonpatch.JSONPatchError, StatusError) as error:
            raise InternalError.of(f'the patch of admission webhook "{hook.name}" cannot be used: {error}') from None
        return made


def question_of(writing: Writing, obj: Object, operation: str) -> Question:
    """What an AdmissionReview says about a write in addition to its objects."""
    kind, name = writing.kind, obj["metadata"].get("name", "")
    return Question(
        kind=kind,
        operation=operation,
        namespace=name if kind.key == matching.NAMESPACES else writing.namespace,
        name=name,
        user=writing.user,
        options=_options(writing, operation),
        subresource=writing.subresource,
        dry_run=writing.options.dry_run,
    )


def _options(writing: Writing, operation: str) -> Object:
    options: Object = {"kind": f"{operation.capitalize()}Options", "apiVersion": f"{META}/v1"}
    deleting = writing.deletion
    if writing.options.dry_run:
        options["dryRun"] = ["All"]
    said: Object = {
        "fieldManager": writing.options.field_manager,
        "fieldValidation": writing.options.field_validation,
    }
    if deleting is not None:
        said = {
            "gracePeriodSeconds": deleting.grace_seconds,
            "propagationPolicy": deleting.propagation,
            "preconditions": _filled({"uid": deleting.uid, "resourceVersion": deleting.resource_version}) or None,
        }
    return options | _filled(said)


def _filled(fields: Object) -> Object:
    return {name: value for name, value in fields.items() if value not in (None, "")}


def denial(name: str, status: Object) -> StatusError:
    """The refusal of a webhook, with its own message, and its own code if that is an error code."""
    code, why = status.get("code"), status.get("message") or status.get("reason")
    if not isinstance(code, int) or not 400 <= code <= 599:
        code = 400
    said = f": {why}" if why else " without explanation"
    message = f'admission webhook "{name}" denied the request{said}'
    return from_status({**status, "message": message, "code": code}, code)


def seen_object(writing: Writing, obj: Any) -> Any:
    """The object that a webhook gets: for the scale subresource, the Scale."""
    if obj is None or writing.subresource != "scale" or writing.kind.scale is None:
        return obj
    return subresources.scale_of(obj, writing.kind.scale)


def _form(kind: ResourceType, obj: Object) -> ResourceType:
    """The kind of the object that a webhook gets: that of the resource, or of the subresource."""
    gvk = GVK.of(obj)
    if gvk.kind == kind.kind:
        return kind
    return replace(subresources.SCALE, group=gvk.group, version=gvk.version, kind=gvk.kind)


def _taken(writing: Writing, obj: Object, made: Object) -> Object:
    """The object with the changes of the webhooks, except for what this write cannot change."""
    kind = writing.kind
    if made["kind"] == subresources.SCALE.kind and kind.scale is not None:
        return subresources.scaled(obj, kind, made)
    if made["kind"] != kind.kind:
        return made
    if writing.subresource == "status":
        return _with(obj, "status", made)
    metadata.keep_server_owned(made, obj)
    for name in ("namespace", "managedFields", "resourceVersion"):
        made["metadata"] = _with(made["metadata"], name, obj["metadata"])
    return _with(made, "status", obj) if kind.status else made


def _with(obj: Object, name: str, other: Object) -> Object:
    """`obj` with a field replaced by that of another object, or removed if that one does not have it."""
    rest = {key: value for key, value in obj.items() if key != name}
    return rest | {name: other[name]} if name in other else rest


async def in_version(question: Question, kind: ResourceType, obj: Any) -> Any:
    """The object in the version that a webhook gets; an object of a subresource has only one version."""
    if obj is None or obj["kind"] != question.kind.kind:
        return obj
    return await _converted(obj, question.kind, kind)


async def _converted(obj: Object, source: ResourceType, target: ResourceType) -> Object:
    return obj if source.gvk == target.gvk else await converted(obj, source, target)
