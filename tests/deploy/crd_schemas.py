#!/usr/bin/env python3
"""Writes a custom resource's definitions as JSON schemas for kubeconform: crd_schemas.py OUTPUT_FOLDER CRD.yaml..."""

import json
import pathlib
import sys

import yaml


def closed(schema):
    """The schema with unknown fields refused, as the API server refuses them under strict field validation."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object" and not open_ended:
        result["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string"):
        result.pop("type", None)
        result["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    return result


def write_schemas(folder, path):
    for definition in yaml.safe_load_all(path.read_text()):
        if not definition or definition["kind"] != "CustomResourceDefinition":
            continue
        spec = definition["spec"]
        for version in spec["versions"]:
            schema = closed(version["schema"]["openAPIV3Schema"])
            # Whatever metadata is; kubeconform knows its form from no definition.
            schema["properties"]["metadata"] = {"type": "object", "required": ["name"]}
            name = f"{spec['names']['kind'].lower()}-{spec['group'].split('.')[0]}-{version['name']}.json"
            (folder / name).write_text(json.dumps(schema))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for path in sys.argv[2:]:
        write_schemas(folder, pathlib.Path(path))


if __name__ == "__main__":
    main()
