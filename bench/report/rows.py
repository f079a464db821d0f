"""Reads every file of results that Sluice writes (docs/file-formats.md, bench/README.md) into plain values. Rows are not trusted:
what is not as it should be is call.Bad, naming the file, the row, the value and what would be right."""
import json
import os

import call as calls
from call import Bad
from values import FIRST, MODEL, Comparison, Data, Start, Timing, Tuned

LONGEST = 300  # characters of a text that a row brings; a compiler's log is not a label


def plain(text, longest=LONGEST):
    """A text that came with the data, fit for a label: one line, nothing that a terminal or a reader's eye would obey."""
    text = "".join(one if one.isprintable() else " " for one in str(text)[:longest + 1]).strip()
    return text if len(text) <= longest else text[:longest - 1] + "…"


def _no_constant(word):
    raise ValueError(f"{word} is not JSON")


def load_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.loads(file.read(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Bad(f"{path}: not JSON: {plain(error)}") from None
    except OSError as error:
        raise Bad(f"{path}: {error.strerror}") from None


def _number(row, key, required=True):
    value = row.get(key)
    if value is None and not required:
        return None
    if type(value) not in (int, float) or not 1e-9 <= value <= 1e15:  # what a clock can say; and ratios of such stay numbers
        raise Bad(f"{key} = {plain(repr(value), 40)}: a number above 0, at most 1e15, would be right")
    return float(value)


def _text(row, key, required=True):
    value = row.get(key)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not value):
        raise Bad(f"{key} = {plain(repr(value), 40)}: a text would be right")
    return plain(value)


def _error(row):
    return None if row.get("error") is None else plain(row["error"]) or "failed"


def _first_use(row):
    """What a call cost that was new. Rows of before `compiles` do not say whether theirs was."""
    return _number(row, "prepare_ms", required=False) if row.get("compiles") not in (None, 0) else None


def comparison(row):
    if "signature" in row:
        call, signature = calls.parse(row["signature"]), _text(row, "signature")
    else:
        call, signature = calls.of_fields(row)
    rivals, failed = row.get("rivals", {}), row.get("failed", {})
    if not isinstance(rivals, dict) or not isinstance(failed, dict):
        raise Bad("rivals and failed must be objects")
    rivals = {plain(name, 40): _number(rivals, name) for name in rivals}
    error, time_us = _error(row), _number(row, "time_us", required=False)
    if error is None and time_us is None:
        error = plain(failed.get("sluice", "no time"))
    return Comparison(call, signature, time_us, _number(row, "copy_us", required=False), None, _text(row, "schedule", False),
                      _text(row, "config", False), error, _first_use(row), rivals,
                      tuple(sorted(set(map(plain, failed)) - {"sluice", "copy"})))


def timing(row):
    signature, error = _text(row, "signature"), _error(row)
    call = calls.parse(row["signature"])
    if error is not None:
        return Timing(call, signature, error=error)
    return Timing(call, signature, _number(row, "time_us"), _number(row, "copy_us"), _number(row, "floor_us"), _text(row, "schedule"),
                  _text(row, "config", False), first_use_ms=_first_use(row))


def tuned(row):
    """None for a call that is kept."""
    signature = _text(row, "problem")
    call = calls.parse(row["problem"])
    candidates = row.get("candidates", [])
    if not isinstance(candidates, list) or not all(isinstance(one, dict) for one in candidates):
        raise Bad("candidates: a list of objects would be right")
    if not row.get("schedule") or not candidates:
        return None

    def name(one):
        return _text(one, "schedule"), _text(one, "config", False)

    def timed(one):
        return (_number(one, "median_us"), "") if one.get("outcome") in ("timed", "slow") else (None, _text(one, "outcome"))

    winner = next((one for one in candidates if name(one) == name(row)), None)
    if winner is None:
        raise Bad(f"{signature}: the winner is not among its candidates")
    us, why = timed(winner)
    if us is None:
        return Tuned(call, signature, None, {FIRST: (None, f"the winner was not timed: {why}")})
    predicted = [one for one in candidates if type(one.get("predicted")) in (int, float) and one["predicted"] > 0]
    choices = {FIRST: timed(candidates[0])}
    if predicted:  # what the model takes to be the fastest; smaller is better
        choices[MODEL] = timed(min(predicted, key=lambda one: one["predicted"]))
    return Tuned(call, signature, us, choices)


def start(document, source):
    first, ways = document.get("first_call"), document.get("ways")
    if not isinstance(first, dict) or not isinstance(ways, dict) or not all(isinstance(way, dict) for way in ways.values()):
        raise Bad("first_call and ways must be objects")
    counts = [f"{first.get(key, 0):d} {word}" for key, word in (("compiles", "compiled"), ("tunings", "tuned"), ("binary_hits", "from the store"))
              if type(first.get(key, 0)) is int]
    return Start(source, _number(first, "device_init_ms"), _number(first, "returned_ms"), _number(first, "finished_ms"), ", ".join(counts),
                 {plain(name, 40): _number(way, "ns") for name, way in ways.items()})


class Reader:
    def __init__(self):
        self.data, self.found = Data(), {}

    def file(self, path):
        name = plain(os.path.basename(path), 60)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError:
            raise Bad(f"{path}: not a text in UTF-8") from None
        except OSError as error:
            raise Bad(f"{path}: {error.strerror}") from None
        if not text.strip():
            raise Bad(f"{path}: the file is empty")
        try:
            document = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            document = None
        if isinstance(document, dict) and not ("gpu" in document and "rows" not in document):
            what = self.whole(path, name, document)
        else:
            what = self.lines(path, text)
        self.data.files.append((name, what))

    def whole(self, path, name, document):
        if "rows" in document:
            self.header(path, document, "gpu")
            said = self.each(path, document["rows"], timing, "timings", "calls of sluice bench")
            for number, row in enumerate(document["rows"], 1):
                self.beside_rivals(f"{path}: row {number}", row, plain(document.get("commit") or ""))
            return said
        if "decisions" in document:
            device = document.get("device")
            self.header(path, device if isinstance(device, dict) else {}, "name")
            for row in document["decisions"] if isinstance(document["decisions"], list) else ():
                if isinstance(row, dict) and row.get("driver"):
                    self.note("drivers", row["driver"])
            return self.each(path, document["decisions"], tuned, "tuned", "decisions of sluice tune")
        if "ways" in document:
            self.header(path, document, "device")
            try:
                self.data.starts.append(start(document, name))
            except Bad as error:
                raise Bad(f"{path}: {error}") from None
            return "cost of the dispatch path"
        if "rules" in document:
            raise Bad(f"{path}: a routing table holds no results; give it with --routing-table")
        raise Bad(f"{path}: not a results file of Sluice: rows of bench/compare_torch.py, or an object with rows (sluice bench), "
                  "decisions (sluice tune) or ways (sluice_overhead) would be right")

    def lines(self, path, text):
        """JSON lines: a header that names the GPU, then rows; of bench/compare_torch.py, or the .part file of `sluice bench`."""
        kind, count, commit = None, 0, ""
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{path}:{number}"
            if not line.strip():
                continue
            try:
                row = json.loads(line, parse_constant=_no_constant)
            except (ValueError, RecursionError) as error:
                raise Bad(f"{where}: not JSON: {plain(error)}") from None
            if not isinstance(row, dict):
                raise Bad(f"{where}: a JSON object would be right")
            if "gpu" in row:
                self.header(where, row, "gpu")
                commit = plain(row.get("commit") or "")
                kind = (timing, "timings") if "fma_per_s" in row else (comparison, "comparisons")
            elif kind is None:
                raise Bad(f"{where}: the first line must name the GPU")
            else:
                count += 1
                value = self.one(where, row, *kind)
                if kind[1] == "comparisons":
                    value.commit = commit
                else:
                    self.beside_rivals(where, row, commit)
        if count == 0:
            raise Bad(f"{path}: no row after the header")
        return f"{count} calls beside rivals" if kind[1] == "comparisons" else f"{count} calls of sluice bench, unfinished"

    def header(self, where, document, key):
        device = document.get(key)
        if not isinstance(device, str) or not device:
            raise Bad(f"{where}: {key} = {plain(repr(device), 40)}: the name of the GPU would be right")
        device = plain(device)
        if self.data.device not in (None, device):
            raise Bad(f"{where}: measured on {device}, but others on {self.data.device}; one report is of one device")
        self.data.device = device
        if document.get("driver"):
            self.note("drivers", document["driver"])
        if document.get("commit"):
            self.note("commits", document["commit"])
        cudnn = document.get("cudnn")
        if type(cudnn) is int and cudnn > 0:
            torch = f", PyTorch {document['torch']}" if document.get("torch") else ""
            self.note("rival_versions", f"cuDNN {cudnn // 10000}.{cudnn // 100 % 100}{torch}")

    def note(self, field, text):
        values = getattr(self.data, field)
        if plain(text) not in values:
            values.append(plain(text))

    def each(self, path, rows, read, kind, what):
        if not isinstance(rows, list):
            raise Bad(f"{path}: the rows must be a list")
        for number, row in enumerate(rows, 1):
            if not isinstance(row, dict):
                raise Bad(f"{path}: row {number}: a JSON object would be right")
            self.one(f"{path}: row {number}", row, read, kind)
        return f"{len(rows)} {what}"

    def beside_rivals(self, where, row, commit):
        """A row of `sluice bench` counts among the comparisons too where rivals were timed in its rotation."""
        if row.get("rivals"):
            self.one(where, row, comparison, "comparisons").commit = commit

    def one(self, where, row, read, kind):
        try:
            value = read(row)
        except Bad as error:
            raise Bad(f"{where}: {error}") from None
        if value is not None:
            before = self.found.get((kind, value.call))
            self.data.repeated += before is not None
            if isinstance(before, Timing) and value.first_use_ms is None:  # a call is new once
                value.first_use_ms = before.first_use_ms
            self.found[kind, value.call] = value
        return value

    def done(self):
        for (kind, _), value in self.found.items():
            getattr(self.data, kind).append(value)
        return self.data


def read(paths):
    reader = Reader()
    for path in paths:
        reader.file(path)
    return reader.done()
