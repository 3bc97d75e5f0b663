"""Reports as text and as Markdown."""

import statistics

UNITS = {
    "tokens_per_second": "tokens/s",
    "decode_tokens_per_second": "tokens/s of the streams",
    "prefill_tokens_per_second": "tokens/s of the prompts",
    "gap_p50_ms": "gap between tokens, p50, ms",
    "gap_p99_ms": "gap between tokens, p99, ms",
    "requests_per_second": "good requests/s",
}


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(values):
    """Median and range."""
    if not values:
        return "-"
    return f"{number(statistics.median(values))} [{number(min(values))}, {number(max(values))}]"


def cells(row, engines):
    label = f"{row['work']}: {UNITS[row['figure']]}"
    values = [spread(row["values"].get(engine, [])) for engine in engines]
    ratio = "-"
    if "ratio" in row:
        ratio = f"{row['ratio']:.2f} [{row['ratio_min']:.2f}, {row['ratio_max']:.2f}]"
    return [label, *values, ratio]


def lines_of(rows, engines):
    return [["", *engines, "ratio"], *(cells(row, engines) for row in rows)]


def as_text(rows, engines):
    lines = lines_of(rows, engines)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def as_markdown(rows, engines):
    head, *body = lines_of(rows, engines)
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def render(report, markdown):
    """The whole report: the machine, then a table and the notes of each model."""
    title = "### {}" if markdown else "{}"
    parts = [f"{report['machine']}, {report['threads']} threads; median [least, greatest] of {report['rounds']} "
             "interleaved rounds; ratio: how many times as good quire is as the better peer"]
    for model in report["models"]:
        table = (as_markdown if markdown else as_text)(model["rows"], model["engines"])
        notes = [f"{name}: {how}" for name, how in model["how"].items() if how]
        notes += model["notes"] + [f"failed: {failure}" for failure in model["failures"]]
        bullet = "- " if markdown else "  "
        parts += [title.format(model["name"]), table, "\n".join(bullet + note for note in notes)]
    return "\n\n".join(part for part in parts if part)
