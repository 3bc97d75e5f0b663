"""Client of quire, an LLM inference server for CPUs."""
from quire_client.async_client import AsyncClient
from quire_client.async_generation_stream import AsyncGenerationStream
from quire_client.async_message_stream import AsyncMessageStream
from quire_client.client import Client
from quire_client.error import FieldViolation, QuireError
from quire_client.generation import FinishReason, Generation
from quire_client.generation_stream import GenerationStream
from quire_client.message_stream import MessageStream
from quire_client.requests import GenerateOptions
from quire_client.retry_policy import RetryPolicy
from quire_client.v1.cache_pb2 import CacheStats
from quire_client.v1.generation_pb2 import (
    ChatMessage,
    ModelInfo,
    PositionLogprobs,
    StreamChunk,
    TokenizeResponse,
    TokenLogprob,
    Timings,
    Usage,
)

__all__ = [
    "AsyncClient",
    "AsyncGenerationStream",
    "AsyncMessageStream",
    "CacheStats",
    "ChatMessage",
    "Client",
    "FieldViolation",
    "FinishReason",
    "GenerateOptions",
    "Generation",
    "GenerationStream",
    "MessageStream",
    "ModelInfo",
    "PositionLogprobs",
    "QuireError",
    "RetryPolicy",
    "StreamChunk",
    "Timings",
    "TokenLogprob",
    "TokenizeResponse",
    "Usage",
]
