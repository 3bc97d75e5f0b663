"""Three ways to end a request early; the cache shows that its blocks are free again.

usage: cancellation.py [HOST:PORT]
"""
import asyncio
import sys

import grpc

from quire_client import AsyncClient, QuireError, StreamChunk

PROMPT = "Once upon a time"


async def leave_the_stream(client: AsyncClient) -> None:
    async with client.stream(PROMPT, max_tokens=2000, ignore_eos=True) as stream:
        async for _ in stream:
            break


async def cancel_the_task(client: AsyncClient) -> None:
    begun = asyncio.Event()

    async def read() -> list[StreamChunk]:
        chunks = []
        async for chunk in client.stream(PROMPT, max_tokens=2000, ignore_eos=True):
            chunks.append(chunk)
            begun.set()
        return chunks

    task = asyncio.create_task(read())
    await begun.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def let_the_deadline_pass(client: AsyncClient) -> None:
    try:
        await client.generate(PROMPT, max_tokens=2000, ignore_eos=True, timeout=0.5)
    except QuireError as error:
        if error.code is not grpc.StatusCode.DEADLINE_EXCEEDED:
            raise


async def wait_until_free(client: AsyncClient) -> int:
    """The readings that it took."""
    readings = 0
    async with client.watch_cache_stats(interval_seconds=0.05) as watch:
        async for stats in watch:
            readings += 1
            if stats.blocks_used == 0:
                break
    return readings


async def main() -> None:
    async with AsyncClient(*sys.argv[1:2]) as client:
        for end_early in (leave_the_stream, cancel_the_task, let_the_deadline_pass):
            await end_early(client)
            print(f"{end_early.__name__}: no block in use at reading {await wait_until_free(client)}")


if __name__ == "__main__":
    asyncio.run(main())
