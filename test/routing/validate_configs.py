#!/usr/bin/env python3
"""Validates the shipped JSON files against configs/schema, and the schemas against files that must fail.

usage: validate_configs.py PROJECT_ROOT [DECISION_TABLE...]
"""
import copy
import json
import pathlib
import sys

import jsonschema


def load(path):
    def no_constant(word):
        raise ValueError(f"{path}: {word} is not JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=no_constant)


def validator(root, name):
    schema = load(root / "configs" / "schema" / f"{name}.schema.json")
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


def problems(check, document):
    return [f"{error.json_path}: {error.message}" for error in check.iter_errors(document)]


def without(document, key):
    return {k: v for k, v in document.items() if k != key}


def with_rule(document, **changes):
    """The table with its first rule changed; None removes a key."""
    out = copy.deepcopy(document)
    rule = out["rules"][0]
    for key, value in changes.items():
        rule.pop(key, None)
        if value is not None:
            rule[key] = value
    return out


def main():
    root = pathlib.Path(sys.argv[1])
    failures = []

    def expect_valid(check, path):
        for problem in problems(check, load(path)):
            failures.append(f"{path.relative_to(root) if path.is_relative_to(root) else path}: {problem}")

    device, routing, decisions, suite = (validator(root, n) for n in ("device", "routing", "decisions", "suite"))
    devices = sorted((root / "configs" / "devices").glob("*.json"))
    tables = sorted((root / "configs" / "routing").glob("*.json"))
    suites = sorted((root / "configs" / "suites").glob("*.json"))
    assert devices and tables and suites, "nothing to validate"
    for path in devices:
        expect_valid(device, path)
        if not load(path).get("source"):
            failures.append(f"{path.name}: a shipped description says where its figures come from")
    for path in tables:
        expect_valid(routing, path)
    for path in suites:
        expect_valid(suite, path)
    for path in map(pathlib.Path, sys.argv[2:]):
        expect_valid(decisions, path)

    # The schemas refuse what the library refuses.
    good_device = load(root / "configs" / "devices" / "h200.json")
    good_table = load(root / "configs" / "routing" / "default.json")
    call = load(root / "configs" / "suites" / "networks.json")[0]
    for_device = {**good_table, "device": {"name": "NVIDIA H200", "capability": 90}}
    bad = [
        (device, without(good_device, "sm_count")),
        (device, {**good_device, "sms": 1}),
        (device, {**good_device, "backend": "metal"}),
        (device, {**good_device, "backend": "rocm"}),
        (device, {**good_device, "capability": 9}),
        (routing, without(good_table, "rules")),
        (routing, {**good_table, "schema": 2}),
        (routing, {**good_table, "device": "NVIDIA H200"}),
        (routing, for_device),  # takes without evidence
        (routing, with_rule(good_table, route="maybe")),
        (routing, with_rule(good_table, when=None)),
        (routing, with_rule(good_table, priority=1)),
        (routing, with_rule(good_table, when={"colour": {"min": 1}})),
        (routing, with_rule(good_table, when={"n": {}})),
        (routing, with_rule(good_table, when={"n": {"min": "1"}})),
        (routing, with_rule(good_table, when={"dtype": ["fp16"]})),
        (decisions, {"schema": 1, "device": good_device}),
        (decisions, {"schema": 1, "device": good_device, "decisions": [{}]}),
        (suite, {"calls": []}),
        (suite, [7]),
        (suite, [without(call, "c")]),
        (suite, [{**call, "stride": [1]}]),
        (suite, [{**call, "pad": [-1, 0]}]),
        (suite, [{**call, "N": []}]),
        (suite, [{**call, "dt": ["f8"]}]),
        (suite, [{**call, "tag": "nwhc"}]),
        (suite, [{**call, "count": 0}]),
    ]
    for number, (check, document) in enumerate(bad):
        if not problems(check, document):
            failures.append(f"bad document {number} passes its schema")
    empty = {"schema": 1, "device": good_device, "decisions": []}
    failures += [f"an empty decision table: {p}" for p in problems(decisions, empty)]

    for failure in failures:
        print(failure)
    print(f"{len(devices)} devices, {len(tables)} routing tables, {len(suites)} suites, {len(bad)} bad documents: {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
