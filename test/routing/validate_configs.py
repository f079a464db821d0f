#!/usr/bin/env python3
"""Validates the shipped JSON files against configs/schema, and the schemas against files that must fail.

usage: validate_configs.py PROJECT_ROOT [DECISION_TABLE or HEURISTIC...]
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

    names = ("device", "routing", "decisions", "suite", "heuristic", "results", "sanitized")
    device, routing, decisions, suite, heuristic, results, sanitized = (validator(root, n) for n in names)
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
    for path in sorted((root / "configs" / "heuristic").glob("*.json")):  # there may be none
        expect_valid(heuristic, path)
    expect_valid(sanitized, root / "configs" / "sanitized.json")
    for path in sorted((root / "bench" / "results").glob("*/kernels.json")):
        expect_valid(results, path)
    for path in map(pathlib.Path, sys.argv[2:]):
        expect_valid(heuristic if "predicts" in load(path) else decisions, path)

    # The schemas refuse what the library refuses.
    good_device = load(root / "configs" / "devices" / "h200.json")
    good_table = load(root / "configs" / "routing" / "default.json")
    call = load(root / "configs" / "suites" / "networks.json")[0]
    for_device = {**good_table, "device": {"name": "NVIDIA H200", "capability": 90}}
    leaf = {"value": 1.25, "cases": 3}
    evidence = {"calls": 8, "left_out": "shapes", "groups": 5, "tested": 8, "picked": 1.05, "worst": 1.3, "default_order": 1.2,
                "default_worst": 2, "versions": "driver 580"}
    good_model = {
        "schema": 1, "device": {"name": "NVIDIA H200", "capability": 90}, "predicts": "time", "evidence": evidence,
        "schedules": [{"name": "dw_flat", "build": "0" * 32, "schedule": {"feature": "plane", "at_most": 196, "yes": leaf, "no":
                       {"feature": "dtype", "is": "f16", "yes": leaf, "no": leaf}},
                       "config": {"feature": "knob.cols", "at_most": 4, "yes": leaf, "no": leaf}}]}

    def with_schedule(**changes):
        return {**good_model, "schedules": [{**good_model["schedules"][0], **changes}]}

    rival = {"time_us": 2.0, "spread_us": [1.9, 2.1], "interval_us": [1.9, 2.1], "engine": "eng6{k2=1}", "mode": "a", "notes": ["tensor_core"],
             "workspace": 0, "error_over_bound": 0.1, "best_us": 2.0, "heuristic_us": 2.5, "best_heuristic_us": 2.0, "engines": "heuristic",
             "tried": 2, "dropped": [{"engine": "eng1{}", "mode": "b", "notes": [], "outcome": "wrong: y"}]}
    row = {"problem": "g8ic8ih8oc8kh3", "dtype": "f16", "layout": "nhwc", "signature": "g8ic8ih8oc8kh3 dt=f16 tag=nhwc", "time_us": 1.0,
           "spread_us": [0.9, 1.1], "interval_us": [0.9, 1.1], "copy_us": 0.5, "floor_us": 0.5, "schedule": "dw_flat", "config": "",
           "error_over_bound": 0.2, "registers": 30, "smem": 0, "schedules": {"dw_row8": 1.5}, "clock_mhz": 1980,
           "rivals": {"cudnn": 2.0}, "rival_details": {"cudnn": rival}, "verdict": "faster"}

    def rows(*them):
        return {"gpu": "NVIDIA H200", "capability": 90, "driver": "580", "sluice": "0.1.0", "commit": "", "protocol": "cold", "cudnn": 91900,
                "fma_per_s": 1e13, "mma_macs_per_s": 1e14, "rows": list(them)}

    failed = {key: row[key] for key in ("problem", "dtype", "layout", "signature")} | {"error": "wrong: y"}
    no_rival = {"rivals": {}, "rival_details": {"cudnn": {"engines": "all", "tried": 0, "dropped": [], "error": "no engine"}}}
    for good in (rows(row), rows(failed), rows(failed | no_rival), rows()):
        failures += [f"good results: {p}" for p in problems(results, good)]
    build = {"schedule": "dw_flat", "digest": "0" * 32}
    run = {"gpu": "NVIDIA H200", "driver": "580", "compiler": "NVRTC 13.0", "commit": "abc", "tools": ["memcheck", "racecheck", "initcheck"],
           "passed": [build]}
    failures += [f"a good list: {p}" for p in problems(sanitized, {"schema": 1, "runs": [run]})]
    bad = [
        (sanitized, {"runs": []}),
        (sanitized, {"schema": 1, "runs": [without(run, "driver")]}),
        (sanitized, {"schema": 1, "runs": [{**run, "tools": ["memcheck", "racecheck"]}]}),
        (sanitized, {"schema": 1, "runs": [{**run, "passed": [{**build, "digest": "1"}]}]}),
        (sanitized, {"schema": 1, "runs": [{**run, "passed": [{**build, "config": ""}]}]}),
        (results, rows(row | {"error": "and a time"})),
        (results, rows(without(row, "rival_details"))),
        (results, rows(row | {"verdict": "perhaps"})),
        (results, rows(row | {"rivals": {"cudnn": 0}})),
        (results, rows(row | {"rival_details": {"cudnn": without(rival, "engine")}})),
        (results, rows() | {"protocol": "tepid"}),
        (heuristic, without(good_model, "evidence")),
        (heuristic, {**good_model, "device": "any"}),
        (heuristic, {**good_model, "predicts": "the weather"}),
        (heuristic, {**good_model, "predicts": "winner"}),  # says nothing of configurations, and has no worst
        (heuristic, {**good_model, "schedules": []}),
        (heuristic, with_schedule(build="new")),
        (heuristic, with_schedule(schedule={**leaf, "value": -1})),
        (heuristic, with_schedule(schedule={"feature": "rank", "at_most": 1, "yes": leaf, "no": leaf})),
        (heuristic, with_schedule(schedule={"feature": "dtype", "is": "f64", "yes": leaf, "no": leaf})),
        (heuristic, with_schedule(schedule={"feature": "dtype", "at_most": 1, "yes": leaf, "no": leaf})),
        (heuristic, with_schedule(config={"feature": "knob.cols", "at_most": 4, "yes": leaf})),
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

    failures += [f"a good heuristic: {p}" for p in problems(heuristic, good_model)]

    for failure in failures:
        print(failure)
    print(f"{len(devices)} devices, {len(tables)} routing tables, {len(suites)} suites, {len(bad)} bad documents: {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
