"""The chunks of one answer, for asyncio."""
from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from quire_client.async_message_stream import AsyncMessageStream
from quire_client.generation import Generation, GenerationBuilder
from quire_client.v1.generation_pb2 import GenerateStreamResponse, StreamChunk


class AsyncGenerationStream(AsyncIterator[StreamChunk]):
    """Iterates over the chunks as they come. Leaving it early ends the request at the server: use it as an async
    context manager, or call `aclose`. The request is sent when the stream is made."""

    def __init__(self, events: AsyncMessageStream[GenerateStreamResponse]) -> None:
        self._events = events
        self._builder = GenerationBuilder()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamChunk:
        async for event in self._events:
            chunk = self._builder.add(event)
            if chunk is not None:
                return chunk
        raise StopAsyncIteration

    @property
    def request_id(self) -> str | None:
        """Known from the first chunk on."""
        return self._builder.started.request_id if self._builder.started else None

    async def result(self) -> Generation:
        """The whole answer; reads what has not been read."""
        async for _ in self:
            pass
        return self._builder.build()

    async def aclose(self) -> None:
        """Ends the request, if it has not ended by itself."""
        await self._events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()
