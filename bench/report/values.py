"""What result files hold, as plain values. Times in microseconds unless their name says otherwise; None is what nobody measured."""
import dataclasses

import call as calls


@dataclasses.dataclass
class Timing:
    """A row of `sluice bench`, or Sluice's half of a row of bench/compare_torch.py."""
    call: calls.Call
    signature: str
    time_us: float = None
    copy_us: float = None
    floor_us: float = None
    schedule: str = ""
    config: str = ""
    error: str = None  # why it does not count; None where it does
    first_use_ms: float = None  # None where nothing was compiled: then it was none


@dataclasses.dataclass
class Comparison(Timing):
    rivals: dict = dataclasses.field(default_factory=dict)  # {name: microseconds}
    rivals_failed: tuple = ()
    commit: str = ""  # of the library that was measured
    taken: bool = None  # by the routing table; None where there is none

    @property
    def rival(self):
        return min(self.rivals, key=self.rivals.get)

    @property
    def speedup(self):
        return self.rivals[self.rival] / self.time_us


FIRST, MODEL = "first in order", "heuristic"


@dataclasses.dataclass
class Tuned:
    """A row of a decision table: what would have run untuned, beside the tuned winner."""
    call: calls.Call
    signature: str
    winner_us: float = None
    untuned: dict = dataclasses.field(default_factory=dict)  # {FIRST, MODEL: (time in us or None, why there is none)}

    @property
    def error(self):
        return next((why for us, why in self.untuned.values() if us is None), None)

    def slowdown(self, choice):
        """The choice's time over the winner's; None where one of them was not timed, or nothing was chosen so."""
        us = self.untuned.get(choice, (None, ""))[0]
        return us / self.winner_us if us and self.winner_us else None


@dataclasses.dataclass
class Start:
    """The first call of a process, and the host's cost of later ones, from sluice_overhead."""
    source: str
    init_ms: float
    first_ms: float
    finished_ms: float
    did: str
    ways_ns: dict


@dataclasses.dataclass
class Data:
    device: str = None
    drivers: list = dataclasses.field(default_factory=list)
    commits: list = dataclasses.field(default_factory=list)
    rival_versions: list = dataclasses.field(default_factory=list)
    files: list = dataclasses.field(default_factory=list)  # (name, what it holds)
    comparisons: list = dataclasses.field(default_factory=list)
    timings: list = dataclasses.field(default_factory=list)
    tuned: list = dataclasses.field(default_factory=list)
    starts: list = dataclasses.field(default_factory=list)
    repeated: int = 0  # rows that a later row about the same call replaced
