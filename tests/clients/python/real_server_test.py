"""The real server with the real model: needs --server HOST:PORT, of a server that nobody else asks."""
import asyncio
from collections.abc import Iterator

import grpc
import pytest

from quire_client import AsyncClient, Client, FinishReason, GenerateOptions, Generation, QuireError

FRANCE = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
COUNT = "One, two, three,"
PATIENCE_SECONDS = 120  # for what must happen; a test fails after it, none takes it


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    with Client(address, timeout=PATIENCE_SECONDS) as client:
        yield client


def wait_until_free(client: Client) -> None:
    with client.watch_cache_stats(interval_seconds=0.05, timeout=PATIENCE_SECONDS) as watch:
        for stats in watch:
            if stats.requests_running == 0 and stats.blocks_used == 0:
                return


def test_health_and_models(client: Client) -> None:
    assert client.health() == "SERVING"
    (model,) = client.models()
    assert model == client.model_info() == client.model_info(model.name)
    assert (model.architecture, model.num_layers, model.vocab_size) == ("llama", 30, 49152)


def test_a_greedy_answer(client: Client) -> None:
    answer = client.generate(messages=FRANCE, temperature=0, max_tokens=24, request_id="france")
    assert "Paris" in answer.text
    assert answer.finish_reason is FinishReason.STOP_TOKEN
    assert answer.usage.completion_tokens == len(answer.token_ids)
    assert answer.request_id == "france" and answer.model == client.models()[0].name
    assert 0 < answer.timings.time_to_first_token_seconds <= answer.timings.total_seconds


def test_a_limit_and_a_stop_string(client: Client) -> None:
    whole = client.generate(COUNT, temperature=0, max_tokens=8)
    assert whole.finish_reason is FinishReason.LENGTH and whole.usage.completion_tokens == 8
    stopped = client.generate(COUNT, temperature=0, max_tokens=8, stop=" five")
    assert stopped.finish_reason is FinishReason.STOP_STRING
    assert stopped.text == whole.text[: whole.text.index(" five")]


def same(streamed: Generation, whole: Generation) -> bool:
    parts = ("text", "token_ids", "finish_reason", "logprobs", "prompt_logprobs", "model")
    return all(getattr(streamed, part) == getattr(whole, part) for part in parts)


def test_a_stream_is_the_whole_answer(client: Client) -> None:
    options: GenerateOptions = {"temperature": 0, "max_tokens": 24, "logprobs": 2, "prompt_logprobs": 1}
    whole = client.generate(COUNT, **options)
    stream = client.stream(COUNT, **options)
    texts = [chunk.text for chunk in stream]
    assert len(texts) > 1 and "".join(texts) == whole.text
    assert stream.request_id
    assert same(stream.result(), whole)


def test_the_async_client_answers_alike(client: Client, address: str) -> None:
    whole = client.generate(COUNT, temperature=0, max_tokens=24)

    async def ask() -> tuple[Generation, Generation]:
        async with AsyncClient(address, timeout=PATIENCE_SECONDS) as other:
            async with other.stream(COUNT, temperature=0, max_tokens=24) as stream:
                return await stream.result(), await other.generate(COUNT, temperature=0, max_tokens=24)

    assert all(same(answer, whole) for answer in asyncio.run(ask()))


def test_tokens_there_and_back(client: Client) -> None:
    tokens = client.tokenize("Grüße, 世界 🙂")
    assert client.detokenize(tokens.token_ids) == "Grüße, 世界 🙂"
    assert len(tokens.token_texts) == len(tokens.token_ids)
    ids = client.tokenize(messages=FRANCE).token_ids
    answer = client.generate(token_ids=ids, temperature=0, max_tokens=8)
    assert answer.text == client.generate(messages=FRANCE, temperature=0, max_tokens=8).text


def test_log_probabilities(client: Client) -> None:
    answer = client.generate(COUNT, temperature=0, max_tokens=4, logprobs=3, prompt_logprobs=0)
    assert [position.chosen.token_id for position in answer.logprobs] == list(answer.token_ids)
    assert "".join(position.chosen.text for position in answer.logprobs) == answer.text
    for position in answer.logprobs:
        assert position.chosen.logprob <= 0 and len(position.top) == 3
        assert position.chosen == position.top[0]
    assert len(answer.prompt_logprobs) == answer.usage.prompt_tokens - 1


def test_a_seed_repeats(client: Client) -> None:
    texts = {client.generate(COUNT, temperature=1, seed=7, max_tokens=16).text for _ in range(2)}
    assert len(texts) == 1


@pytest.mark.parametrize("streamed", [False, True])
def test_a_wrong_value_is_named(client: Client, streamed: bool) -> None:
    with pytest.raises(QuireError) as caught:
        client.stream(COUNT, temperature=-1).result() if streamed else client.generate(COUNT, temperature=-1)
    error = caught.value
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT and error.reason == "INVALID_ARGUMENT"
    (violation,) = error.field_violations
    assert violation.field == "sampling.temperature" and "-1" in violation.description


def test_an_unknown_model(client: Client) -> None:
    with pytest.raises(QuireError) as caught:
        client.generate(COUNT, model="none")
    assert caught.value.code is grpc.StatusCode.NOT_FOUND


def test_a_stream_that_is_left_frees_its_blocks(client: Client) -> None:
    with client.stream(COUNT, max_tokens=4000, ignore_eos=True) as stream:
        next(stream)
        assert client.cache_stats().blocks_used > 0
    wait_until_free(client)


def test_a_deadline_frees_its_blocks(client: Client) -> None:
    with pytest.raises(QuireError) as caught:
        client.generate(COUNT, max_tokens=4000, ignore_eos=True, timeout=0.5)
    assert caught.value.code is grpc.StatusCode.DEADLINE_EXCEEDED
    wait_until_free(client)


def test_cancelled_tasks_free_their_blocks(client: Client, address: str) -> None:
    async def run() -> None:
        async with AsyncClient(address) as other:
            calls = [other.generate(COUNT, max_tokens=4000, ignore_eos=True) for _ in range(4)]
            tasks = [asyncio.create_task(call) for call in calls]
            async with other.watch_cache_stats(interval_seconds=0.05) as watch:
                async for stats in watch:
                    if stats.requests_running == len(tasks):
                        break
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
            await asyncio.to_thread(wait_until_free, client)

    asyncio.run(run())


def test_many_at_once(address: str) -> None:
    async def run() -> list[Generation]:
        async with AsyncClient(address, timeout=PATIENCE_SECONDS) as client:
            calls = [client.generate(messages=FRANCE, temperature=0, max_tokens=24) for _ in range(16)]
            return await asyncio.gather(*calls)

    answers = asyncio.run(run())
    assert all("Paris" in answer.text for answer in answers)
    assert len({answer.request_id for answer in answers}) == 16


def test_the_cache_knows_the_tenant(client: Client, address: str) -> None:
    with Client(address, tenant="team-a") as other, other.stream(COUNT, max_tokens=4000, ignore_eos=True) as stream:
        next(stream)
        stats = client.cache_stats(include_requests=True)
    assert [tenant.tenant for tenant in stats.tenants] == ["team-a"]
    assert stats.requests[0].request_id == stream.request_id
    assert stats.blocks_total == stats.blocks_used + stats.blocks_free + stats.blocks_cached
    wait_until_free(client)
