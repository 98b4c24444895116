"""A small S3 client: multipart uploads that go on where they stopped, ranged downloads, signature version 4."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

import aiohttp

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
        self._access, self._secret, self._token = access_key, secret_key, token
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
        query = query or {}
        path = f"{self._prefix}/{quote(key)}"
        for attempt in range(1, ATTEMPTS + 1):
            signed = self._signed(method, path, query, body, headers or {})
            url = f"{self._scheme}://{self._host}{path}"
            if query:
                url += "?" + _query(query)
            try:
                from yarl import URL

                async with self._session.request(
                    method, URL(url, encoded=True), data=body, headers=signed, allow_redirects=False
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

    def _signed(
        self, method: str, path: str, query: dict[str, str], body: bytes, headers: dict[str, str]
    ) -> dict[str, str]:
        digest = hashlib.sha256(body).hexdigest()
        time = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        sent = {**headers, "host": self._host, "x-amz-content-sha256": digest, "x-amz-date": time}
        if self._token:
            sent["x-amz-security-token"] = self._token
        if not self._access:
            return sent
        names = ";".join(sorted(sent))
        canonical = "\n".join(
            (method, path, _query(query), *(f"{name}:{sent[name]}" for name in sorted(sent)), "", names, digest)
        )
        scope = f"{time[:8]}/{self._region}/s3/aws4_request"
        words = f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = b"AWS4" + self._secret.encode()
        for step in (time[:8], self._region, "s3", "aws4_request"):
            key = hmac.digest(key, step.encode(), "sha256")
        signature = hmac.digest(key, words.encode(), "sha256").hex()
        credential = f"Credential={self._access}/{scope}, SignedHeaders={names}, Signature={signature}"
        return {**sent, "authorization": f"AWS4-HMAC-SHA256 {credential}"}

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


def _query(query: dict[str, str]) -> str:
    return "&".join(f"{quote(name, safe='')}={quote(query[name], safe='')}" for name in sorted(query))


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
