"""Images of the simulated hypervisor."""

from __future__ import annotations

from typing import Final

from holdfast.meta.sizes import GIB
from holdfast.providers.contract import (
    Code,
    Image,
    Prepared,
    ProviderError,
    Task,
)
from holdfast.providers.simulated.records import ImageRecord, TaskRecord
from holdfast.providers.simulated.tasks import Tasks

IMAGE_BYTES: Final = 2 * GIB


class Images(Tasks):
    """The images of the world."""

    async def prepare_image(self, image: Image, name: str, storage_hint: str = "") -> Prepared:
        answer = await self._call("prepare_image", name)
        there = next((one for one in self._images.values() if one.name == name), None)
        source = image.url or image.path or image.template
        if there is not None and (there.source, there.checksum) == (source, image.checksum):
            answer()
            waiting = self._open.get(there.id, ())
            return Prepared(id=there.id, path=f"images/{there.id}", task=Task(id=waiting[0]) if waiting else None)
        if image.template and not image.url:
            self._image_bytes(image)
        elif not source:
            raise ProviderError(Code.INVALID, f"image {name} has no template, path or URL")
        self._can(self.answers.image_import or bool(image.template), "the import of images")
        record = ImageRecord(
            id=self._next("image"), name=name, virtual_bytes=IMAGE_BYTES, checksum=image.checksum, source=source
        )
        self._save(record)
        size = 0 if image.template else IMAGE_BYTES
        stages = (("downloading", 6), ("importing", 2), ("converting", 2)) if size else ()
        if size and (image.compress or image.compact):
            stages = (*stages, ("optimizing", 2))
        seconds = self.latencies.copying(size)
        task = await self._start("prepare_image", name, record.id, seconds, total_bytes=size, stages=stages)
        answer()
        return Prepared(id=record.id, path=f"images/{record.id}", task=task)

    async def _do_prepare_image(self, task: TaskRecord) -> dict[str, str]:
        record = self._images[task.subject]
        for other in [one for one in self._images.values() if one.name == record.name and one.id != record.id]:
            del self._images[other.id]
            self._journal.remove("image", other.id)
        record.ready = True
        self._save(record)
        return {"path": f"images/{record.id}", "size_bytes": str(record.virtual_bytes), "checksum": record.checksum}

    async def _undo_prepare_image(self, task: TaskRecord) -> None:
        self._images.pop(task.subject, None)
        self._journal.remove("image", task.subject)

    def _image_bytes(self, image: Image) -> int:
        if image.template:
            prepared = next((one for one in self._images.values() if image.template in (one.id, one.name)), None)
            if prepared is not None and not prepared.ready:
                raise ProviderError(Code.RETRYABLE, f"image {image.template} is still being prepared")
            if prepared is None and self.world.templates and image.template not in self.world.templates:
                raise ProviderError(Code.NOT_FOUND, f"template {image.template} does not exist")
            return prepared.virtual_bytes if prepared else IMAGE_BYTES
        if not image.path and not image.url:
            raise ProviderError(Code.INVALID, "the image has no template, path or URL")
        return IMAGE_BYTES
