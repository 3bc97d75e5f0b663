"""What a PromQL expression asks for: enough of the language to hold our own expressions to the exported metrics."""

import re

# Labels that Prometheus, Kubernetes or a histogram adds to what the server exports.
TARGET_LABELS = {"instance", "job", "namespace", "pod", "le"}
KEYWORDS = {"by", "without", "on", "ignoring", "group_left", "group_right", "and", "or", "unless", "bool", "offset"}
RATES = {"rate", "irate", "increase"}
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"


def mask_strings(text):
    """Empties quoted strings, so that names are not looked for in them."""
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)


def labels_of(expression):
    """Every label that a matcher, a grouping or a join names."""
    labels = set()
    for matchers in re.findall(r"\{([^}]*)\}", expression):
        labels.update(re.findall(rf"({NAME})\s*(?:=~|!~|!=|=)", matchers))
    for names in re.findall(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)", expression):
        labels.update(re.findall(NAME, names))
    return labels


def series_of(expression):
    """Pairs (series name, function it stands directly in, or None), in order."""
    bare = re.sub(r"\{[^}]*\}", "", expression)
    bare = re.sub(r"\[[^\]]*\]", "", bare)
    bare = re.sub(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", "", bare)
    found = []
    for match in re.finditer(NAME, bare):
        if match.group() in KEYWORDS or re.match(r"\s*\(", bare[match.end():]):
            continue
        around = re.search(rf"({NAME})\s*\(\s*$", bare[:match.start()])
        found.append((match.group(), around.group(1) if around else None))
    return found


def family_of(series, metrics):
    """The exported family that a series belongs to, or None; metrics: {family: (type, labels)}."""
    kind = metrics.get(series, (None,))[0]
    if kind in ("counter", "gauge"):
        return series
    family, _, suffix = series.rpartition("_")
    if suffix in ("bucket", "sum", "count") and metrics.get(family, (None,))[0] == "histogram":
        return family
    return None


def faults_of(expression, metrics):
    """Sentences that say what is wrong with an expression; none if all it asks for is exported."""
    expression = mask_strings(expression)
    faults = []
    known_labels = set(TARGET_LABELS)
    series = series_of(expression)
    if not series:
        faults.append("it names no metric")
    for name, function in series:
        family = family_of(name, metrics)
        if family is None:
            faults.append(f"{name} is not exported")
            continue
        kind, labels = metrics[family]
        known_labels.update(labels)
        if kind == "gauge" and function in RATES:
            faults.append(f"{name} is a gauge, so {function}() of it says nothing")
        if kind != "gauge" and function not in RATES:
            faults.append(f"{name} only ever grows: rate() or increase() is missing")
    for label in sorted(labels_of(expression) - known_labels):
        faults.append(f"none of its metrics has a label {label}")
    return faults
