"""The wire shapes of OpenAI's API, as far as the mock engine speaks it: requests, answers, chunks, errors.

Pure.  Fields that change nothing here (temperature, tools, ``nvext`` and others) are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from holdfast.profiler.mocker import text

DEFAULT_OUTPUT: Final = 128
"""Tokens of an answer whose length is not asked for."""

DONE: Final = b"data: [DONE]\n\n"

FinishReason = Literal["stop", "length"]


class Refusal(Exception):
    """A request that is refused, as OpenAI's API says it."""

    def __init__(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.param = param
        self.code = code

    def body(self) -> bytes:
        return error_body(self.message, status=self.status, param=self.param, code=self.code)


def error_body(message: str, *, status: int, param: str | None = None, code: str | None = None) -> bytes:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return msgspec.json.encode({"error": {"message": message, "type": kind, "param": param, "code": code}})


# --- requests


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False


class _Common(msgspec.Struct, kw_only=True):
    model: str = ""
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    min_tokens: int | None = None
    n: int | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None


class _Message(msgspec.Struct):
    role: str
    content: str | list[dict[str, Any]] | None = None


class _Chat(_Common, kw_only=True):
    messages: list[_Message]


class _Completion(_Common, kw_only=True):
    prompt: Any = ""


_read_chat: Final = msgspec.json.Decoder(_Chat).decode
_read_completion: Final = msgspec.json.Decoder(_Completion).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a request asks for.

    prompt_tokens  tokens of the prompt
    output_tokens  tokens of the answer, unless a stop text ends it before
    bounded        whether the length was asked for, so that reaching it is the finish reason ``length``
    """

    chat: bool
    model: str
    prompt_tokens: int
    output_tokens: int
    bounded: bool
    stop: tuple[str, ...]
    stream: bool
    include_usage: bool


def read(body: bytes, *, chat: bool) -> Asked:
    """The request in a body; raises `Refusal`."""
    asked: _Chat | _Completion
    try:
        asked = _read_chat(body) if chat else _read_completion(body)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        raise Refusal(what, param=path.strip("`.") or None) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refusal(f"the body is not JSON: {error}") from None
    if not asked.model:
        raise Refusal("you must provide a model parameter", param="model")
    if asked.n not in (None, 1):
        raise Refusal("only one choice is supported: leave n out, or set it to 1", param="n")
    limit = asked.max_completion_tokens if asked.max_completion_tokens is not None else asked.max_tokens
    for name, value, least in (("max_tokens", limit, 1), ("min_tokens", asked.min_tokens, 0)):
        if value is not None and value < least:
            raise Refusal(f"{name} is {value}; it must be at least {least}", param=name)
    least = asked.min_tokens or 0
    if limit is not None and least > limit:
        raise Refusal(f"min_tokens is {least}, more than max_tokens, {limit}", param="min_tokens")
    stops = (asked.stop,) if isinstance(asked.stop, str) else tuple(asked.stop or ())
    if len(stops) > 4 or "" in stops:
        raise Refusal("stop has at most four texts, none of them empty", param="stop")
    return Asked(
        chat=chat,
        model=asked.model,
        prompt_tokens=_chat_tokens(asked) if isinstance(asked, _Chat) else _prompt_tokens(asked.prompt),
        output_tokens=limit if limit is not None else max(least, DEFAULT_OUTPUT),
        bounded=limit is not None,
        stop=stops,
        stream=bool(asked.stream),
        include_usage=asked.stream_options is not None and asked.stream_options.include_usage,
    )


def _chat_tokens(asked: _Chat) -> int:
    if not asked.messages:
        raise Refusal("messages is empty; write at least one", param="messages")
    return text.count_chat(_content(each) for each in asked.messages)


def _content(message: _Message) -> str:
    if isinstance(message.content, list):
        return " ".join(str(part.get("text", "")) for part in message.content if part.get("type") == "text")
    return message.content or ""


def _prompt_tokens(prompt: Any) -> int:
    """A prompt is a text, or a list of numbers of tokens; a list with one of these counts as that one."""
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return max(text.count(prompt), 1)
    if isinstance(prompt, list) and prompt and all(isinstance(each, int) for each in prompt):
        return len(prompt)
    raise Refusal("prompt must be one text or one list of tokens", param="prompt")


# --- answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What all parts of an answer have in common."""

    asked: Asked
    id: str
    created: int

    def whole(self, content: str, tokens: int, reason: FinishReason) -> bytes:
        if self.asked.chat:
            choice: dict[str, Any] = {"message": {"role": "assistant", "content": content}}
        else:
            choice = {"text": content}
        object = "chat.completion" if self.asked.chat else "text_completion"
        return self._encoded(object, [self._choice(choice, reason)], self._usage(tokens))

    def part(self, content: str, *, first: bool) -> bytes:
        """One piece of a stream."""
        if not self.asked.chat:
            return self._event([self._choice({"text": content}, None)])
        role = {"role": "assistant"} if first else {}
        return self._event([self._choice({"delta": {**role, "content": content}}, None)])

    def end(self, tokens: int, reason: FinishReason) -> bytes:
        """The last pieces of a stream."""
        last = self._event([self._choice({"delta": {}} if self.asked.chat else {"text": ""}, reason)])
        usage = self._event([], self._usage(tokens)) if self.asked.include_usage else b""
        return last + usage + DONE

    def _choice(self, content: dict[str, Any], reason: FinishReason | None) -> dict[str, Any]:
        return {"index": 0, **content, "logprobs": None, "finish_reason": reason}

    def _usage(self, tokens: int) -> dict[str, int]:
        prompt = self.asked.prompt_tokens
        return {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}

    def _event(self, choices: list[dict[str, Any]], usage: dict[str, int] | None = None) -> bytes:
        object = "chat.completion.chunk" if self.asked.chat else "text_completion"
        return b"data: " + self._encoded(object, choices, usage) + b"\n\n"

    def _encoded(self, object: str, choices: list[dict[str, Any]], usage: dict[str, int] | None) -> bytes:
        body: dict[str, Any] = {
            "id": f"{'chatcmpl' if self.asked.chat else 'cmpl'}-{self.id}",
            "object": object,
            "created": self.created,
            "model": self.asked.model,
            "choices": choices,
        }
        return msgspec.json.encode(body if usage is None else {**body, "usage": usage})


def models(names: tuple[str, ...], *, created: int) -> bytes:
    """The answer of ``/v1/models``."""
    data = [{"id": name, "object": "model", "created": created, "owned_by": "holdfast"} for name in names]
    return msgspec.json.encode({"object": "list", "data": data})
