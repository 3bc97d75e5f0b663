#!/usr/bin/env python3
"""Dashboard, alerts, autoscaling and routing ask only for metrics that the server exports."""

import json
import pathlib
import re
import unittest

from promql import TARGET_LABELS, family_of, faults_of

HERE = pathlib.Path(__file__).resolve().parent
DEPLOY = HERE.parent.parent / "deploy"
ADAPTER = DEPLOY / "prometheus" / "adapter-values.yaml"
AUTOSCALER = DEPLOY / "helm" / "quire" / "templates" / "autoscaler.yaml"
METRIC_IN_TEXT = re.compile(r"(?<![\w.:/-])(?:vllm:|quire_)[a-zA-Z0-9_]+(?![\w:-])")


def read_metrics(lines):
    """{family: (type, labels)} of exported_metrics.txt."""
    metrics = {}
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        family, kind, labels = line.split()
        if kind not in ("counter", "gauge", "histogram") or family in metrics:
            raise ValueError(f"exported_metrics.txt: unknown type or second line of a family: {line.strip()}")
        metrics[family] = (kind, set() if labels == "-" else set(labels.split(",")))
    return metrics


METRICS = read_metrics((HERE / "exported_metrics.txt").read_text().splitlines())


def dashboard_expressions(dashboard):
    """Pairs (where, expression) of every panel's targets, those in collapsed rows too."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield f"panel '{panel['title']}'", target["expr"]
        yield from dashboard_expressions({"panels": panel.get("panels", [])})


def rule_expressions(text):
    """Pairs (where, expression) of a rule file whose expressions stand on one line or in a folded block."""
    for match in re.finditer(r"alert: (\S+)\n(?: +for: .*\n)? +expr: (?:>-\n((?: {10}.*\n)+)|(.*)\n)", text):
        yield f"alert {match.group(1)}", " ".join((match.group(2) or match.group(3)).split())


def adapter_rules(text):
    """Tuples (series, name for the autoscaler, query) of the Prometheus adapter's rules."""
    return re.findall(r"seriesQuery: '([\w:]+)\{.*\}'\n(?:.*\n)*?.* as: (\w+)\n.*metricsQuery: (.+)\n", text)


class ExportedNames(unittest.TestCase):
    def assert_exported(self, expressions):
        expressions = list(expressions)
        self.assertTrue(expressions, "no expression was found")
        for where, expression in expressions:
            with self.subTest(where, expression=expression):
                self.assertEqual(faults_of(expression, METRICS), [])

    def test_dashboard(self):
        dashboard = json.loads((DEPLOY / "grafana" / "quire.json").read_text())
        self.assert_exported(dashboard_expressions(dashboard))
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                metric, label = re.fullmatch(r"label_values\(([\w:]+), (\w+)\)", variable["query"]["query"]).groups()
                self.assertIsNotNone(family_of(metric, METRICS), metric)
                self.assertIn(label, TARGET_LABELS | METRICS[metric][1])

    def test_alerts(self):
        text = (DEPLOY / "prometheus" / "alerts.yaml").read_text()
        rules = list(rule_expressions(text))
        self.assertEqual(len(rules), text.count("- alert:"), "an expression is written in a way this test can't read")
        self.assert_exported(rules)

    def test_autoscaling(self):
        rules = adapter_rules(ADAPTER.read_text())
        self.assertEqual(len(rules), ADAPTER.read_text().count("seriesQuery"), "a rule this test can't read")
        for series, _, query in rules:
            self.assertIsNotNone(family_of(series, METRICS), series)
            placeholders = {"<<.Series>>": series, "<<.LabelMatchers>>": 'pod="a"', "<<.GroupBy>>": "pod"}
            for placeholder, value in placeholders.items():
                query = query.replace(placeholder, value)
            self.assertEqual(faults_of(query, METRICS), [])
        asked = re.findall(r"metric:\n +name: (\S+)", AUTOSCALER.read_text())
        self.assertTrue(asked, "the autoscaler asks for no metric")
        self.assertLessEqual(set(asked), {name for _, name, _ in rules}, "the adapter has no rule for it")

    def test_every_other_file(self):
        aliases = {name for _, name, _ in adapter_rules(ADAPTER.read_text())}
        for path in sorted(path for path in DEPLOY.rglob("*") if path.is_file()):
            for name in METRIC_IN_TEXT.findall(path.read_text()):
                known = name in aliases or name in METRICS or family_of(name, METRICS) is not None
                self.assertTrue(known, f"{path.relative_to(DEPLOY)}: {name} is not exported")


class FaultsAreSeen(unittest.TestCase):
    """The check itself, on expressions with one fault each."""

    METRICS = read_metrics(["a_total counter reason", "b gauge -", "h_seconds histogram -"])

    def assert_fault(self, expression, fault):
        self.assertIn(fault, " ".join(faults_of(expression, self.METRICS)))

    def test_good_ones_pass(self):
        for expression in ('sum by (reason) (rate(a_total{reason!="x", instance=~"$i"}[5m]))', "b / clamp_min(b, 1)",
                           "histogram_quantile(0.9, sum by (le) (rate(h_seconds_bucket[$__rate_interval])))"):
            self.assertEqual(faults_of(expression, self.METRICS), [], expression)

    def test_unknown_metric(self):
        self.assert_fault("rate(c_total[5m])", "c_total is not exported")
        self.assert_fault("b + c", "c is not exported")
        self.assert_fault("rate(b_bucket[5m])", "b_bucket is not exported")
        self.assert_fault("rate(h_seconds[5m])", "h_seconds is not exported")
        self.assert_fault("1", "names no metric")

    def test_unknown_label(self):
        self.assert_fault("sum by (tenant) (rate(a_total[5m]))", "label tenant")
        self.assert_fault('b{reason="x"}', "label reason")

    def test_types(self):
        self.assert_fault("rate(b[5m])", "b is a gauge")
        self.assert_fault("sum(a_total)", "rate() or increase() is missing")

    def test_list(self):
        for lines in (["a gauge - -"], ["a summary -"], ["a gauge -", "a gauge -"]):
            with self.assertRaises(ValueError):
                read_metrics(lines)


if __name__ == "__main__":
    unittest.main()
