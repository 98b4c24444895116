"""Images: found in folders, downloaded, checked, converted."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import msgspec

from holdfast.meta.sizes import MIB
from holdfast.providers.contract import (
    Code,
    Image,
    Prepared,
    ProviderError,
    Stage,
    Task,
)
from holdfast.providers.qemu import tools
from holdfast.providers.qemu.checks import NAME
from holdfast.providers.qemu.files import discard
from holdfast.providers.qemu.records import (
    ImageRecord,
    TaskRecord,
)
from holdfast.providers.qemu.tasks import Tasks

_CHECKSUMS: Final = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}


class Images(Tasks):
    """The images of the provider."""

    async def _image_for(self, image: Image) -> str | Path:
        """The prepared image of a machine, or the folder of its kernel."""
        if image.template:
            prepared = [one for one in self._books.images.values() if image.template in (one.id, one.name)]
            if prepared:
                return prepared[-1].id
            for folder in self._image_folders:
                if NAME.fullmatch(image.template) and (folder / image.template / "vmlinuz").is_file():
                    return folder / image.template
                for found in sorted(folder.glob(f"{image.template}.*")) if NAME.fullmatch(image.template) else ():
                    if found.suffix in (".qcow2", ".img", ".raw", ".vmdk"):
                        return await self._implicit(Image(path=str(found)))
            raise ProviderError(Code.NOT_FOUND, f"there is no image or template {image.template}")
        if image.path:
            known = next((one.id for one in self._books.images.values() if image.path in (one.id, one.file)), "")
            if known:
                return known
            path = self._allowed(image.path)
            if (path / "vmlinuz").is_file():
                return path
        return await self._implicit(image)

    async def _implicit(self, image: Image) -> str:
        """Prepare an image that no VMImage has prepared, once for each of its versions."""
        version = image.checksum
        if image.path:
            found = self._allowed(image.path).stat()
            version = f"{found.st_mtime_ns}-{found.st_size}"
        key = hashlib.sha256(f"{image.url} {image.path} {version}".encode()).hexdigest()[:16]
        return (await self.prepare_image(image, f"auto-{key}")).id

    def _allowed(self, path: str) -> Path:
        found = Path(path)
        for folder in self._image_folders:
            whole = (folder / found).resolve()
            if whole.is_relative_to(folder.resolve()) and whole.exists():
                return whole
        raise ProviderError(Code.NOT_FOUND, f"there is no image {path} in the folders of images of this provider")

    async def _image_ready(self, id: str) -> ImageRecord:
        running = self._running.get(self._last.get(id, ""))
        if running is not None:
            await asyncio.wait({running})
        image = self._books.images.get(id)
        if image is None or not image.ready:
            failed = [one for one in self._books.tasks.values() if one.subject == id and one.error]
            why = failed[-1].error if failed else "it was not prepared"
            raise ProviderError(failed[-1].code or Code.INTERNAL if failed else Code.NOT_FOUND, f"image {id}: {why}")
        return image

    async def prepare_image(self, image: Image, name: str, storage_hint: str = "") -> Prepared:
        source = image.url or image.path or image.template
        there = [one for one in self._books.images.values() if one.name == name]
        for one in there:
            if (one.source, one.checksum) == (source, image.checksum):
                last = self._last.get(one.id)
                return Prepared(id=one.id, path=one.file, task=Task(id=last) if last else None)
        if image.template and not image.url and not image.path:
            found = await self._image_for(image)
            return Prepared(id=image.template, path=str(found))
        if image.url:
            if urlsplit(image.url).scheme not in ("http", "https"):
                raise ProviderError(Code.INVALID, f"the image {image.url} is not at a URL of http or https")
            self._staging.hosts.check(image.url)
        if image.path:
            path = self._allowed(image.path)
            if (path / "vmlinuz").is_file():
                return Prepared(id=str(path), path=str(path))
        elif not image.url:
            raise ProviderError(Code.INVALID, f"image {name} has no template, path or URL")
        id = self._number("image")
        record = ImageRecord(id=id, name=name, source=source, checksum=image.checksum, file=f"{id}.qcow2")
        self._books.images[id] = record
        task = self._submit("prepare_image", id, {"image": msgspec.to_builtins(image)})
        return Prepared(id=id, path=record.file, task=task)

    async def _do_prepare_image(self, task: TaskRecord) -> dict[str, str]:
        record = self._books.images[task.subject]
        image = msgspec.convert(task.args["image"], Image)
        target = self._data / "images" / record.file
        source = target.with_suffix(".download")
        optimizes = image.compress or image.compact
        stages = (*(("downloading",) if image.url else ()), "converting", *(("optimizing",) if optimizes else ()))
        try:
            if image.url:
                await self._download(image.url, source, task.id, stages)
            else:
                source = self._allowed(image.path)
            checksum = await asyncio.to_thread(_checksum, source, image.checksum_type, image.checksum)
            if image.checksum and checksum != image.checksum.lower().rpartition(":")[2]:
                raise ProviderError(
                    Code.INVALID, f"image {record.name} has the checksum {checksum}, expected {image.checksum}"
                )
            found = await tools.probe(source)
            if not target.exists():
                report = self._report(task.id, source.stat().st_size)
                plain = target.with_suffix(".plain") if optimizes else target
                at = self._stage(task.id, _stage(stages, "converting"), report)
                await tools.convert(source, plain, source_format=found.format, on_progress=at)
                if optimizes:
                    at = self._stage(task.id, _stage(stages, "optimizing"), report)
                    await tools.convert(plain, target, compress=image.compress, on_progress=at)
        finally:
            target.with_suffix(".download").unlink(missing_ok=True)
            target.with_suffix(".plain").unlink(missing_ok=True)
        record.virtual_bytes, record.ready = found.virtual_size, True
        used = {name for guest in self._guests.values() for name in guest.record.backing}
        for old in [one for one in self._books.images.values() if one.name == record.name and one.id != record.id]:
            del self._books.images[old.id]
            if old.file not in used:
                discard(self._data / "images" / old.file)
        self._write()
        return {"path": record.file, "size_bytes": str(found.virtual_size), "checksum": checksum}

    async def _undo_prepare_image(self, task: TaskRecord) -> None:
        image = self._books.images.pop(task.subject, None)
        if image is not None:
            discard(self._data / "images" / image.file)

    async def _download(self, url: str, target: Path, task: str, stages: tuple[str, ...]) -> None:
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, sock_read=60)) as session,
                session.get(url) as response,
            ):
                self._staging.hosts.check(str(response.url))  # it may have been redirected
                if response.status >= 400:
                    code = Code.NOT_FOUND if response.status in (404, 410) else Code.RETRYABLE
                    raise ProviderError(code, f"{url} answers with status {response.status}")
                total = response.content_length or 0
                at = self._stage(task, _stage(stages, "downloading", total), self._report(task, total))
                done = 0
                with target.open("wb") as file:
                    async for block in response.content.iter_chunked(MIB):
                        await asyncio.to_thread(file.write, block)
                        done += len(block)
                        if total:
                            at(100 * done / total)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ProviderError(Code.RETRYABLE, f"{url} cannot be fetched: {type(error).__name__}") from None


def _stage(stages: tuple[str, ...], name: str, total: int = 0) -> Stage:
    return Stage(name=name, number=stages.index(name) + 1, count=len(stages), total_bytes=total or None)


def _checksum(path: Path, kind: str, expected: str) -> str:
    algorithm = kind.lower().replace("-", "") or _CHECKSUMS.get(len(expected.rpartition(":")[2]), "sha256")
    if algorithm not in _CHECKSUMS.values():
        raise ProviderError(Code.INVALID, f"checksum type {kind} is not one of {', '.join(_CHECKSUMS.values())}")
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()
