"""A whole answer, and how it is put together from the events of a stream."""
from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from quire_client.v1 import generation_pb2
from quire_client.v1.generation_pb2 import (
    GenerateResponse,
    GenerateStreamResponse,
    PositionLogprobs,
    StreamChunk,
    StreamFinished,
    StreamStarted,
    Timings,
    Usage,
)


class FinishReason(StrEnum):
    """Why the output ended."""

    STOP_TOKEN = "stop_token"
    STOP_STRING = "stop_string"
    LENGTH = "length"
    # A reason that this version of the client does not know.
    UNSPECIFIED = "unspecified"


_FINISH_REASONS = {
    generation_pb2.FINISH_REASON_STOP_TOKEN: FinishReason.STOP_TOKEN,
    generation_pb2.FINISH_REASON_STOP_STRING: FinishReason.STOP_STRING,
    generation_pb2.FINISH_REASON_LENGTH: FinishReason.LENGTH,
}


@dataclass(frozen=True)
class Generation:
    """An answer. `logprobs` has one entry for each of `token_ids`, `prompt_logprobs` one for each prompt token but the
    first, if they were asked for; else they are empty."""

    text: str
    finish_reason: FinishReason
    token_ids: tuple[int, ...]
    usage: Usage
    timings: Timings
    logprobs: tuple[PositionLogprobs, ...]
    prompt_logprobs: tuple[PositionLogprobs, ...]
    request_id: str
    model: str

    @classmethod
    def from_response(cls, response: GenerateResponse) -> Generation:
        output = response.outputs[0]
        return cls(
            text=output.text,
            finish_reason=_finish_reason(output.finish_reason),
            token_ids=tuple(output.token_ids),
            usage=response.usage,
            timings=response.timings,
            logprobs=tuple(output.logprobs),
            prompt_logprobs=tuple(response.prompt_logprobs),
            request_id=response.request_id,
            model=response.model,
        )


class GenerationBuilder:
    """Collects the events of one stream."""

    def __init__(self) -> None:
        self.started: StreamStarted | None = None
        self._finished: StreamFinished | None = None
        self._chunks: list[StreamChunk] = []

    def add(self, event: GenerateStreamResponse) -> StreamChunk | None:
        """The event's chunk, if it is one."""
        match event.WhichOneof("event"):
            case "started":
                self.started = event.started
            case "finished":
                self._finished = event.finished
            case "chunk":
                self._chunks.append(event.chunk)
                return event.chunk
        return None

    def build(self) -> Generation:
        if self.started is None or self._finished is None:
            raise RuntimeError("the stream was left before its end: there is no whole answer")
        chunks = self._chunks
        return Generation(
            text="".join(chunk.text for chunk in chunks),
            finish_reason=_finish_reason(self._finished.finish_reason),
            token_ids=tuple(token for chunk in chunks for token in chunk.token_ids),
            usage=self._finished.usage,
            timings=self._finished.timings,
            logprobs=tuple(position for chunk in chunks for position in chunk.logprobs),
            prompt_logprobs=tuple(position for chunk in chunks for position in chunk.prompt_logprobs),
            request_id=self.started.request_id,
            model=self.started.model,
        )


def carries_output(event: GenerateStreamResponse) -> bool:
    """From the first such event on, a call is not made again: its reader has seen a part of the answer."""
    return event.WhichOneof("event") != "started"


def _finish_reason(value: generation_pb2.FinishReason.ValueType) -> FinishReason:
    return _FINISH_REASONS.get(value, FinishReason.UNSPECIFIED)
