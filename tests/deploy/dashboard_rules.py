#!/usr/bin/env python3
"""Prints the dashboard's expressions as a rule file, so that promtool parses them: dashboard_rules.py DASHBOARD.json"""

import json
import sys

from metric_names_test import dashboard_expressions


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        expressions = [expression for _, expression in dashboard_expressions(json.load(file))]
    rules = [{"record": f"dashboard:{index}", "expr": expression.replace("$__rate_interval", "1m")}
             for index, expression in enumerate(expressions)]
    # JSON is YAML.
    print(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}, indent=1))


if __name__ == "__main__":
    main()
