"""Arguments of the methods as messages. Ranges are the server's to check."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from google.protobuf.message import Message

from quire_client.v1.generation_pb2 import (
    ChatMessage,
    ChatMessages,
    GenerateRequest,
    SamplingParams,
    TokenIds,
    TokenizeRequest,
)

# {"role": "user", "content": "..."}
MessageLike = ChatMessage | Mapping[str, str]


class GenerateOptions(TypedDict, total=False):
    """What `generate` and `stream` take by keyword; None is as good as left out."""

    # Instead of the prompt: a conversation for the model's chat template, or token ids as they are.
    messages: Iterable[MessageLike] | None
    token_ids: Iterable[int] | None

    model: str | None  # default: the only one
    request_id: str | None  # default: the server makes one
    priority: int | None  # among the requests of one tenant, lower runs first; default 0
    cache_salt: str | None  # cached prefixes are shared only within one tenant and salt
    skip_reading_prefix_cache: bool | None

    temperature: float | None  # 0 is greedy; default 1
    top_k: int | None  # 0, the default, keeps all
    top_p: float | None
    min_p: float | None
    repetition_penalty: float | None
    seed: int | None
    max_tokens: int | None  # default: what fits in the model's length
    stop: str | Iterable[str] | None  # the text ends before the first of these
    stop_token_ids: Iterable[int] | None
    ignore_eos: bool | None
    logprobs: int | None  # this many alternatives beside each output token's own
    prompt_logprobs: int | None  # the same for each prompt token but the first
    include_special_tokens: bool | None


_INPUTS = ("messages", "token_ids")
_FIELD_OF_OPTION = {"stop": "stop_strings"}


def generate_request(prompt: str | None, options: GenerateOptions) -> GenerateRequest:
    request = GenerateRequest()
    _set_input(request, prompt, options.get("messages"), options.get("token_ids"))
    for name, value in options.items():
        if name not in GenerateOptions.__annotations__:
            raise TypeError(f"unexpected option '{name}'")
        if name in _INPUTS or value is None:
            continue
        field = _FIELD_OF_OPTION.get(name, name)
        target = request.sampling if field in SamplingParams.DESCRIPTOR.fields_by_name else request
        # A lone string would be taken as its characters.
        _set_field(target, name, field, [value] if name == "stop" and isinstance(value, str) else value)
    return request


def tokenize_request(
    text: str | None, messages: Iterable[MessageLike] | None, model: str, parse_special: bool
) -> TokenizeRequest:
    _check_one(text=text, messages=messages)
    request = TokenizeRequest(model=model, parse_special=parse_special)
    if text is not None:
        request.text = text
    if messages is not None:
        request.chat.CopyFrom(_chat_messages(messages))
    return request


def _set_input(
    request: GenerateRequest,
    prompt: str | None,
    messages: Iterable[MessageLike] | None,
    token_ids: Iterable[int] | None,
) -> None:
    _check_one(prompt=prompt, messages=messages, token_ids=token_ids)
    if prompt is not None:
        request.text = prompt
    if messages is not None:
        request.chat.CopyFrom(_chat_messages(messages))
    if token_ids is not None:
        request.token_ids.CopyFrom(TokenIds(ids=token_ids))


def _check_one(**inputs: object) -> None:
    given = [name for name, value in inputs.items() if value is not None]
    if len(given) != 1:
        raise TypeError(f"expected exactly one of {', '.join(inputs)}; got {' and '.join(given) or 'none'}")


def _chat_messages(messages: Iterable[MessageLike]) -> ChatMessages:
    return ChatMessages(messages=[each if isinstance(each, ChatMessage) else ChatMessage(**each) for each in messages])


def _set_field(message: Message, option: str, field: str, value: object) -> None:
    values: dict[str, Any] = {field: value}
    try:
        message.MergeFrom(type(message)(**values))
    except (TypeError, ValueError) as error:  # protobuf's own message does not say which
        raise type(error)(f"{option}: {error}") from None
