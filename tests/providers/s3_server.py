"""A small S3 server for tests: objects, ranges, multipart uploads; every request must be signed."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import quote

from aiohttp import web

ACCESS, SECRET = "access-key", "secret-key-of-tests"


@dataclass
class S3:
    """What the server has, and what was asked of it."""

    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, tuple[str, dict[int, bytes]]] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    fail: int = 0
    """How many of the next requests are refused as too many."""
    fail_parts_after: int | None = None
    endpoint: str = ""

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        key = request.path.partition("/bucket/")[2]
        self.requests.append((request.method, request.path_qs))
        if not signed(request, body):
            return web.Response(status=403, text="<Error><Code>SignatureDoesNotMatch</Code></Error>")
        if self.fail:
            self.fail -= 1
            return web.Response(status=503, text="<Error><Code>SlowDown</Code></Error>")
        query = request.query
        match request.method:
            case "GET" if "uploads" in query:
                found = [
                    f"<Upload><Key>{name}</Key><UploadId>{id}</UploadId></Upload>"
                    for id, (name, _) in self.uploads.items()
                    if name.startswith(query.get("prefix", ""))
                ]
                return web.Response(text=f"<R xmlns='urn:s3'>{''.join(found)}</R>")
            case "POST" if "uploads" in query:
                id = f"upload-{len(self.requests)}"
                self.uploads[id] = (key, {})
                return web.Response(text=f"<R><UploadId>{id}</UploadId></R>")
            case "PUT" if "uploadId" in query:
                if self.fail_parts_after is not None and int(query["partNumber"]) > self.fail_parts_after:
                    return web.Response(status=400, text="<Error><Code>Interrupted</Code></Error>")
                self.uploads[query["uploadId"]][1][int(query["partNumber"])] = body
                return web.Response(headers={"ETag": f'"{hashlib.md5(body).hexdigest()}"'})
            case "GET" if "uploadId" in query:
                parts = self.uploads[query["uploadId"]][1]
                listed = "".join(
                    f'<Part><PartNumber>{n}</PartNumber><ETag>"{hashlib.md5(data).hexdigest()}"</ETag></Part>'
                    for n, data in parts.items()
                )
                return web.Response(text=f"<R><IsTruncated>false</IsTruncated>{listed}</R>")
            case "POST":
                name, parts = self.uploads.pop(query["uploadId"])
                self.objects[name] = b"".join(parts[n] for n in sorted(parts))
                return web.Response(text="<R/>")
            case "DELETE" if "uploadId" in query:
                self.uploads.pop(query["uploadId"], None)
            case "PUT":
                self.objects[key] = body
            case "DELETE":
                self.objects.pop(key, None)
            case "HEAD" | "GET":
                if key not in self.objects:
                    return web.Response(status=404, text="<Error><Code>NoSuchKey</Code></Error>")
                data = self.objects[key]
                if request.method == "GET" and "Range" in request.headers:
                    first, last = map(int, request.headers["Range"].removeprefix("bytes=").split("-"))
                    return web.Response(status=206, body=data[first : last + 1])
                return web.Response(body=data, headers={"ETag": f'"{hashlib.md5(data).hexdigest()}"'})
        return web.Response(status=204)


def signed(request: web.Request, body: bytes) -> bool:
    """Whether a request has the signature (version 4) that its words demand."""
    given = request.headers.get("Authorization", "")
    if not given.startswith(f"AWS4-HMAC-SHA256 Credential={ACCESS}/"):
        return False
    fields = dict(part.strip().split("=", 1) for part in given.partition(" ")[2].split(","))
    day, region, service, _ = fields["Credential"].split("/")[1:]
    query = "&".join(sorted(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in request.query.items()))
    lines = [request.method, request.rel_url.raw_path, query]
    lines += [f"{name}:{request.headers[name].strip()}" for name in fields["SignedHeaders"].split(";")]
    lines += ["", fields["SignedHeaders"], hashlib.sha256(body).hexdigest()]
    words = "\n".join(
        (
            "AWS4-HMAC-SHA256",
            request.headers["x-amz-date"],
            f"{day}/{region}/{service}/aws4_request",
            hashlib.sha256("\n".join(lines).encode()).hexdigest(),
        )
    )
    key = f"AWS4{SECRET}".encode()
    for step in (day, region, service, "aws4_request"):
        key = hmac.new(key, step.encode(), "sha256").digest()
    return hmac.new(key, words.encode(), "sha256").hexdigest() == fields["Signature"]


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[S3]:
    s3 = S3()
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", s3.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    s3.endpoint = f"http://{host}:{port}"
    try:
        yield s3
    finally:
        await runner.cleanup()
