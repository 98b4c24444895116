"""A small S3 client: multipart uploads that go on where they stopped, ranged downloads, signature version 4."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from xml.etree import ElementTree

import aiohttp
from yarl import URL

from holdfast.meta.exchange import Request
from holdfast.meta.signatures import Credentials, path_string, query_string, signed
from holdfast.providers.contract import Code, ProviderError

PART: Final = 16 << 20
ATTEMPTS: Final = 4
_MISSING: Final = (404, 410)


class Bucket:
    """A bucket, as an asynchronous context."""

    def __init__(
        self,
        *,
        name: str,
        endpoint: str = "",
        region: str = "us-east-1",
        path_style: bool = False,
        access_key: str = "",
        secret_key: str = "",
        token: str = "",
        part_size: int = PART,
    ) -> None:
        base = urlsplit(endpoint or f"https://s3.{region}.amazonaws.com")
        if base.scheme not in ("http", "https") or not base.netloc:
            raise ProviderError(Code.INVALID, f"the S3 endpoint {endpoint} is not a URL of http or https")
        self._scheme = base.scheme
        self._host = base.netloc if path_style else f"{name}.{base.netloc}"
        self._prefix = f"/{name}" if path_style else ""
        self._region = region
        self._credentials = Credentials(access_key, secret_key, token) if access_key else None
        self._part = part_size
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Bucket:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=60))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    # --- requests ----------------------------------------------------------------------

    async def _request(
        self,
        method: str,
        key: str,
        query: dict[str, str] | None = None,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
        *,
        missing: bool = False,
    ) -> tuple[int, dict[str, str], bytes]:
        """One request, repeated while the server is busy; `missing` says that an absent object is an answer."""
        assert self._session is not None
        request = Request(
            method=method,
            path=f"{self._prefix}/{key}",
            query={name: (value,) for name, value in (query or {}).items()},
            headers=headers or {},
            body=body,
        )
        # What is signed is what is sent: the URL is in its canonical form already.
        written = query_string(request.query)
        url = f"{self._scheme}://{self._host}{path_string(request.path)}{'?' if written else ''}{written}"
        for attempt in range(1, ATTEMPTS + 1):
            sent = request.headers
            if self._credentials is not None:
                now = datetime.now(UTC)
                sent = signed(request, self._credentials, host=self._host, now=now, region=self._region)
            try:
                async with self._session.request(
                    method, URL(url, encoded=True), data=body, headers=sent, allow_redirects=False
                ) as response:
                    data = await response.read()
                    status, found = response.status, {name.lower(): value for name, value in response.headers.items()}
            except (aiohttp.ClientError, TimeoutError) as error:
                failure = ProviderError(Code.RETRYABLE, f"S3 at {self._host} does not answer: {type(error).__name__}")
            else:
                if status < 300 or (missing and status in _MISSING):
                    return status, found, data
                failure = _error(status, data, self._host, key)
            if not failure.transient or attempt == ATTEMPTS:
                raise failure
            await asyncio.sleep(0.2 * 2**attempt)
        raise AssertionError("unreachable")

    # --- objects -----------------------------------------------------------------------

    async def upload(self, key: str, source: Path, progress: Callable[[int], None]) -> None:
        """Upload a file in parts; those that an interrupted upload of the same file left are kept."""
        size = source.stat().st_size
        if size <= self._part:
            await self._request("PUT", key, body=await asyncio.to_thread(source.read_bytes))
            progress(size)
            return
        upload = await self._unfinished(key)
        there = await self._parts(key, upload) if upload else {}
        if not upload:
            _, _, data = await self._request("POST", key, {"uploads": ""})
            upload = _text(ElementTree.fromstring(data), "UploadId")
        tags = []
        with source.open("rb") as file:
            for number in range(1, -(-size // self._part) + 1):
                body = await asyncio.to_thread(_read_at, file, (number - 1) * self._part, self._part)
                tag = hashlib.md5(body, usedforsecurity=False).hexdigest()
                if there.get(number) != tag:
                    query = {"partNumber": str(number), "uploadId": upload}
                    _, headers, _ = await self._request("PUT", key, query, body)
                    tag = headers.get("etag", tag).strip('"')
                tags.append(tag)
                progress(min(size, number * self._part))
        listed = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>" for number, tag in enumerate(tags, 1)
        )
        body = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
        _, _, data = await self._request("POST", key, {"uploadId": upload}, body)
        if b"<Error" in data:
            raise _error(500, data, self._host, key)

    async def download(self, key: str, target: Path, progress: Callable[[int], None]) -> None:
        """Download an object in ranges, after what the file has already."""
        _, headers, _ = await self._request("HEAD", key)
        size, tag = int(headers.get("content-length", 0)), headers.get("etag", "")
        done = target.stat().st_size if target.exists() else 0
        with target.open("ab") as file:
            if done > size:
                done = 0
            file.truncate(done)
            while done < size:
                last = min(size, done + self._part) - 1
                wanted = {"range": f"bytes={done}-{last}", **({"if-match": tag} if tag else {})}
                _, _, data = await self._request("GET", key, headers=wanted)
                await asyncio.to_thread(file.write, data)
                done += len(data)
                progress(done)
            file.flush()
            await asyncio.to_thread(os.fsync, file.fileno())

    async def remove(self, key: str) -> None:
        """Delete an object, and uploads of it that were not finished."""
        while upload := await self._unfinished(key):
            await self._request("DELETE", key, {"uploadId": upload}, missing=True)
        await self._request("DELETE", key, missing=True)

    async def _unfinished(self, key: str) -> str:
        _, _, data = await self._request("GET", "", {"uploads": "", "prefix": key}, missing=True)
        if not data:
            return ""
        root = ElementTree.fromstring(data)
        found = [one for one in root.iter() if _tag(one) == "Upload" and _text(one, "Key") == key]
        return _text(found[0], "UploadId") if found else ""

    async def _parts(self, key: str, upload: str) -> dict[int, str]:
        found: dict[int, str] = {}
        marker = ""
        while True:
            query = {"uploadId": upload, **({"part-number-marker": marker} if marker else {})}
            _, _, data = await self._request("GET", key, query)
            root = ElementTree.fromstring(data)
            for one in root.iter():
                if _tag(one) == "Part":
                    found[int(_text(one, "PartNumber"))] = _text(one, "ETag").strip('"')
            if _text(root, "IsTruncated") != "true":
                return found
            marker = _text(root, "NextPartNumberMarker")


def _read_at(file: Any, offset: int, size: int) -> bytes:
    data: bytes = os.pread(file.fileno(), size, offset)
    return data


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _text(element: ElementTree.Element, name: str) -> str:
    return next((one.text or "" for one in element.iter() if _tag(one) == name), "")


def _error(status: int, data: bytes, host: str, key: str) -> ProviderError:
    found = re.search(rb"<Code>([^<]{1,80})</Code>", data)
    words = found[1].decode(errors="replace") if found else f"status {status}"
    code = {400: Code.INVALID, 401: Code.UNAUTHORIZED, 403: Code.UNAUTHORIZED, 404: Code.NOT_FOUND}.get(status)
    if code is None:
        code = Code.RETRYABLE if status >= 500 or status in (408, 409, 429) else Code.INVALID
    return ProviderError(code, f"S3 at {host} refuses {key or 'the bucket'}: {words}")
