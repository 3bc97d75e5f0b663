"""The chunks of one answer."""
from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Self

from quire_client.generation import Generation, GenerationBuilder
from quire_client.message_stream import MessageStream
from quire_client.v1.generation_pb2 import GenerateStreamResponse, StreamChunk


class GenerationStream(Iterator[StreamChunk]):
    """Iterates over the chunks as they come. Leaving it early ends the request at the server: use it as a context
    manager, or call `close`, which any thread may do. The request is sent when the stream is made."""

    def __init__(self, events: MessageStream[GenerateStreamResponse]) -> None:
        self._events = events
        self._builder = GenerationBuilder()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamChunk:
        for event in self._events:
            chunk = self._builder.add(event)
            if chunk is not None:
                return chunk
        raise StopIteration

    @property
    def request_id(self) -> str | None:
        """Known from the first chunk on."""
        return self._builder.started.request_id if self._builder.started else None

    def result(self) -> Generation:
        """The whole answer; reads what has not been read."""
        for _ in self:
            pass
        return self._builder.build()

    def close(self) -> None:
        """Ends the request, if it has not ended by itself."""
        self._events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
