"""Routing tables as the library applies them: rules in order, the first whose conditions all hold (docs/routing.md)."""
import dataclasses
import math
import os

import call as calls
import rows

NUMBERS = {"cpg", "multiplier", "depthwise", "groups", "kernel_area", "r", "s", "stride", "dilation", "n", "c", "k", "h", "w", "p", "q",
           "plane", "outputs", "macs", "bytes", "align", "bias", "residual", "wide_offsets"}
NAMES = {"dtype", "layout", "weight_layout", "activation"}


@dataclasses.dataclass
class Rule:
    name: str
    take: bool
    when: dict  # {feature: [values], or {"min", "max"}}

    def meets(self, features, only=None):
        """Whether a call's features meet the conditions, or those of them that `only` names."""
        return all(meets(features[name], condition) for name, condition in self.when.items() if only is None or name in only)


@dataclasses.dataclass
class Table:
    origin: str  # the file's name
    device: str  # name, or "any"
    measured: dict
    rules: list

    def rule_of(self, features):
        """Index of the rule that decides; None = kept by default."""
        if not all(meets(features[name], condition) for name, condition in self.measured.items()):
            return None
        return next((i for i, rule in enumerate(self.rules) if rule.meets(features)), None)


def meets(value, condition):
    if isinstance(condition, list):
        return value in condition
    return condition.get("min", -math.inf) <= value <= condition.get("max", math.inf)


def _conditions(value, where):
    if not isinstance(value, dict):
        raise calls.Bad(f"{where}: conditions must be an object")
    for feature, condition in value.items():
        if feature in NAMES:
            good = isinstance(condition, list) and condition and all(isinstance(one, str) for one in condition)
        else:
            bounds = condition.values() if isinstance(condition, dict) and condition and set(condition) <= {"min", "max"} else condition
            good = feature in NUMBERS and bounds and not isinstance(bounds, (str, int, float)) and all(
                type(one) in (int, float) and math.isfinite(one) for one in bounds)
        if not good:
            raise calls.Bad(f"{where}: condition {feature!r}: a feature of docs/routing.md with a list or with min and max would be right")
    return value


def load(path):
    document = rows.load_json(path)
    if not isinstance(document, dict) or not isinstance(document.get("rules"), list):
        raise calls.Bad(f"{path}: not a routing table: it has no list \"rules\"")
    device = document.get("device")
    name = device if device == "any" else device.get("name") if isinstance(device, dict) else None
    if not isinstance(name, str):
        raise calls.Bad(f"{path}: device: \"any\", or an object with a name would be right")
    found = []
    for i, rule in enumerate(document["rules"]):
        where = f"{path}: rule {i + 1}"
        if not isinstance(rule, dict) or not isinstance(rule.get("name"), str) or rule.get("route") not in ("take", "keep"):
            raise calls.Bad(f"{where}: a name and a route, take or keep, would be right")
        found.append(Rule(rule["name"], rule["route"] == "take", _conditions(rule.get("when", {}), where)))
    return Table(os.path.basename(path), name, _conditions(document.get("measured", {}), f"{path}: measured"), found)


def shipped_folder():
    """Where the library's own tables are: beside the installed scripts, or in the source tree."""
    here = os.path.dirname(os.path.realpath(__file__))
    folders = (os.path.join(here, "..", "routing"), os.path.join(here, "..", "..", "configs", "routing"))
    return next((os.path.normpath(folder) for folder in folders if os.path.isdir(folder)), None)


def find(device, path=None):
    """The table for a device: `path`, a file or a folder, else the shipped one, else the default for any device. None for the
    host device, which takes everything."""
    if path and not os.path.isdir(path):
        table = load(path)
        if table.device not in ("any", device):
            raise calls.Bad(f"{path}: the routing table is for {table.device}, the rows are of {device}")
        return table
    if path is None and device == "host":
        return None
    best = None
    for folder in filter(None, (path, shipped_folder())):
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".json"):
                continue
            table = load(os.path.join(folder, name))
            if table.device == device or (table.device == "any" and best is None):
                best = table
                if table.device == device:
                    return best
        if best:
            return best
    return None


def apply(table, data):
    """Says of every comparison whether the table takes the call; nothing where there is no table."""
    for row in data.comparisons if table else ():
        rule = table.rule_of(row.call.features)
        row.taken = rule is not None and table.rules[rule].take
