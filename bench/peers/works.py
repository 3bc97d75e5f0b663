"""What is measured, and how figures come from the times at which tokens came."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """One line of the table. `tokens` are each request's output tokens in a round."""

    name: str
    kind: str  # prefill, decode or mixed
    batch: int
    context: int  # prompt tokens of each request
    tokens: int
    prompts: int = 0  # mixed: prompts of PROMPT_TOKENS that arrive, each when the one before has its first token


PROMPT_TOKENS = 512
WORKS = (
    Work("prefill 512", "prefill", 1, PROMPT_TOKENS, 1),
    Work("decode 1 x 512", "decode", 1, 512, 64),
    Work("decode 16 x 128", "decode", 16, 128, 48),
    Work("decode 32 x 1024", "decode", 32, 1024, 24),
    Work("mixed", "mixed", 16, 128, 0, prompts=8),
)
# The figures of each kind, and whether more of one is better.
FIGURES = {
    "prefill": (("tokens_per_second", True),),
    "decode": (("tokens_per_second", True),),
    "mixed": (
        ("gap_p99_ms", False),
        ("gap_p50_ms", False),
        ("decode_tokens_per_second", True),
        ("prefill_tokens_per_second", True),
    ),
}


def works_named(names):
    """The works whose name or kind is among `names`; all if there are none."""
    return [work for work in WORKS if not names or work.name in names or work.kind in names]


def percentile(values, share):
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)]


def prefill_figures(start, times):
    return {"tokens_per_second": PROMPT_TOKENS / (times[0][0] - start)}


def decode_figures(streams):
    """Tokens per second from the moment when all streams have begun. A stream is [(time, tokens so far)...]."""
    all_begun = max(stream[0][0] for stream in streams)
    end = max(stream[-1][0] for stream in streams)
    tokens = sum(stream[-1][1] - max(count for time, count in stream if time <= all_begun) for stream in streams)
    return {"tokens_per_second": tokens / (end - all_begun)}


def mixed_figures(streams, num_prompts, begin, end):
    """What the streams saw from the first prompt's arrival to the last one's first token. Tokens that came in one
    message count as one gap."""
    gaps = []
    tokens = 0
    for stream in streams:
        for (before, count_before), (time, count) in zip(stream, stream[1:]):
            if begin < time <= end:
                gaps.append(time - max(before, begin))
                tokens += count - count_before
            elif before <= end < time:
                gaps.append(end - before)  # suffered too, as far as it lies within
    return {
        "gap_p99_ms": 1000 * percentile(gaps, 99),
        "gap_p50_ms": 1000 * percentile(gaps, 50),
        "decode_tokens_per_second": tokens / (end - begin),
        "prefill_tokens_per_second": num_prompts * PROMPT_TOKENS / (end - begin),
    }
