"""Many requests at once, answers as they come: the server batches them, and a full queue is waited for.

usage: many_requests.py [HOST:PORT]
"""
import asyncio
import sys

from quire_client import AsyncClient, Generation, QuireError, RetryPolicy

CONCURRENCY = 16
COUNTRIES = ("France", "Italy", "Spain", "Japan", "Egypt", "Peru", "Kenya", "Norway")


async def main() -> None:
    retry = RetryPolicy(max_retries=10)
    async with AsyncClient(*sys.argv[1:2], timeout=300, retry=retry) as client:
        slots = asyncio.Semaphore(CONCURRENCY)

        async def ask(country: str) -> tuple[str, Generation]:
            question = [{"role": "user", "content": f"What is the capital of {country}? Answer in one sentence."}]
            async with slots:
                return country, await client.generate(messages=question, temperature=0, max_tokens=32)

        for next_answer in asyncio.as_completed([ask(country) for country in COUNTRIES]):
            try:
                country, answer = await next_answer
                print(f"{country}: {answer.text} ({answer.usage.completion_tokens} tokens)")
            except QuireError as error:
                print(f"failed: {error}", file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main())
