"""The client for asyncio."""
from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Self, Unpack

from grpc_health.v1 import health_pb2, health_pb2_grpc

from quire_client.async_caller import AsyncCaller
from quire_client.async_generation_stream import AsyncGenerationStream
from quire_client.async_message_stream import AsyncMessageStream
from quire_client.connection import Connection, Pem
from quire_client.generation import Generation, carries_output
from quire_client.requests import GenerateOptions, MessageLike, generate_request, tokenize_request
from quire_client.retry_policy import RetryPolicy
from quire_client.v1.cache_pb2 import CacheStats, GetCacheStatsRequest, WatchCacheStatsRequest
from quire_client.v1.cache_pb2_grpc import CacheStub
from quire_client.v1.generation_pb2 import (
    DetokenizeRequest,
    GetModelInfoRequest,
    ListModelsRequest,
    ModelInfo,
    TokenizeResponse,
)
from quire_client.v1.generation_pb2_grpc import GenerationStub


class AsyncClient:
    """A quire server, over one connection, with the methods of Client. It belongs to the event loop in which it is
    made; its tasks may share it. A call that fails raises QuireError, a cancelled task ends its request at the server.

    `timeout` is the deadline of each call in seconds, retries included; a method's own comes before it. The other
    parameters are those of Connection and RetryPolicy.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        tls: bool = False,
        ca_certificate: Pem | None = None,
        client_certificate: Pem | None = None,
        client_key: Pem | None = None,
        api_key: str | None = None,
        tenant: str | None = None,
        timeout: float | None = None,
        retry: RetryPolicy = RetryPolicy(),
    ) -> None:
        connection = Connection(address, tls, ca_certificate, client_certificate, client_key, api_key, tenant)
        self._timeout = timeout
        self._channel = connection.open_async_channel()
        self._caller = AsyncCaller(connection.metadata(), retry)
        self._generation = GenerationStub(self._channel)
        self._cache = CacheStub(self._channel)
        self._health = health_pb2_grpc.HealthStub(self._channel)

    async def generate(
        self, prompt: str | None = None, *, timeout: float | None = None, **options: Unpack[GenerateOptions]
    ) -> Generation:
        """The whole answer to a prompt, or to the `messages` or `token_ids` of the options."""
        request = generate_request(prompt, options)
        return Generation.from_response(
            await self._caller.unary(self._generation.Generate, request, self._timeout_or(timeout))
        )

    def stream(
        self, prompt: str | None = None, *, timeout: float | None = None, **options: Unpack[GenerateOptions]
    ) -> AsyncGenerationStream:
        """The same answer as it is made."""
        request = generate_request(prompt, options)
        return AsyncGenerationStream(
            self._caller.stream(
                self._generation.GenerateStream, request, self._timeout_or(timeout), commits=carries_output
            )
        )

    async def tokenize(
        self,
        text: str | None = None,
        *,
        messages: Iterable[MessageLike] | None = None,
        model: str = "",
        parse_special: bool = False,
        timeout: float | None = None,
    ) -> TokenizeResponse:
        """The token ids of a text, or of `messages` through the chat template, and the text of each."""
        request = tokenize_request(text, messages, model, parse_special)
        return await self._caller.unary(self._generation.Tokenize, request, self._timeout_or(timeout))

    async def detokenize(
        self,
        token_ids: Iterable[int],
        *,
        model: str = "",
        include_special_tokens: bool = False,
        timeout: float | None = None,
    ) -> str:
        request = DetokenizeRequest(model=model, token_ids=token_ids, include_special_tokens=include_special_tokens)
        response = await self._caller.unary(self._generation.Detokenize, request, self._timeout_or(timeout))
        return response.text

    async def models(self, *, timeout: float | None = None) -> list[ModelInfo]:
        response = await self._caller.unary(self._generation.ListModels, ListModelsRequest(), self._timeout_or(timeout))
        return list(response.models)

    async def model_info(self, model: str = "", *, timeout: float | None = None) -> ModelInfo:
        """NOT_FOUND for another name than `models` gives; an empty one means the only model."""
        request = GetModelInfoRequest(model=model)
        return await self._caller.unary(self._generation.GetModelInfo, request, self._timeout_or(timeout))

    async def cache_stats(self, *, include_requests: bool = False, timeout: float | None = None) -> CacheStats:
        request = GetCacheStatsRequest(include_requests=include_requests)
        return await self._caller.unary(self._cache.GetCacheStats, request, self._timeout_or(timeout))

    def watch_cache_stats(
        self, *, interval_seconds: float | None = None, include_requests: bool = False, timeout: float | None = None
    ) -> AsyncMessageStream[CacheStats]:
        """The same at once, and then every interval until the stream is left. The client's timeout does not end it."""
        request = WatchCacheStatsRequest(interval_seconds=interval_seconds, include_requests=include_requests)
        return self._caller.stream(self._cache.WatchCacheStats, request, timeout, commits=lambda stats: True)

    async def health(self, service: str = "", *, timeout: float | None = None) -> str:
        """Says "SERVING" or "NOT_SERVING". It is asked once: a server that cannot be reached is an answer, too."""
        request = health_pb2.HealthCheckRequest(service=service)
        response = await self._caller.once(self._health.Check, request, self._timeout_or(timeout))
        return str(health_pb2.HealthCheckResponse.ServingStatus.Name(response.status))

    async def close(self) -> None:
        """Closes the connection, and ends the calls on it."""
        self._caller.cancel_all()
        await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def _timeout_or(self, timeout: float | None) -> float | None:
        return self._timeout if timeout is None else timeout
