"""How every picture looks: two themes, hues that the colour-blind and a grey printer tell apart (each with a shape or hatch of its own),
marks that can be counted, legends that cover nothing."""
import dataclasses
import io

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator  # noqa: E402

WIDTH, DPI = 10, 120  # inches; legible where a page scales it to 880 pixels
MARK, FAILURE = "mark", "failure"  # gid of what stands for one row each


@dataclasses.dataclass(frozen=True)
class Theme:
    name: str
    back: str
    text: str
    grid: str
    win: str      # Sluice, and faster
    loss: str     # the rival, and slower
    third: str
    faint: str
    steps: tuple  # of a heat map, from slowest to fastest


# Blue and orange as Okabe and Ito chose them; a heat map's middle is the page's own colour.
LIGHT = Theme("light", "#ffffff", "#1c1f23", "#dfe2e6", "#0072b2", "#d55e00", "#00735a", "#8a929b",
              ("#d55e00", "#eb9a5c", "#f8d5b8", "#dcebf5", "#a6cfe8", "#4f9fcf", "#0f6aa8", "#003f73"))
DARK = Theme("dark", "#14171a", "#e8eaed", "#363c43", "#56b4e9", "#f0903c", "#4fd1ab", "#868f99",
             ("#f0903c", "#b36525", "#6b4020", "#1f3a4d", "#235b80", "#2f86bd", "#65b8ea", "#b3defa"))
THEMES = (LIGHT, DARK)
DTYPE_MARKERS = {"f16": "o", "bf16": "s", "f32": "^"}


def dtype_hue(theme, dtype):
    return {"f16": theme.win, "bf16": theme.loss, "f32": theme.third}[dtype]


def context(theme):
    """Settings for everything drawn within; text from rows is never taken for mathematics."""
    return matplotlib.rc_context({
        "figure.facecolor": theme.back, "axes.facecolor": theme.back, "savefig.facecolor": theme.back, "text.color": theme.text,
        "axes.edgecolor": theme.faint, "axes.labelcolor": theme.text, "xtick.color": theme.text, "ytick.color": theme.text,
        "grid.color": theme.grid, "axes.grid": True, "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
        "font.family": "DejaVu Sans", "font.size": 11, "axes.titlesize": 12, "axes.titlelocation": "left", "legend.frameon": False,
        "legend.fontsize": 10.5, "hatch.linewidth": 0.8, "text.parse_math": False, "text.usetex": False})


def panels(columns, height, sharey=False, strip=0.5, width=WIDTH):
    """A figure of one row of axes with a strip of so many inches for the legend below: (figure, [axes], strip)."""
    figure = plt.figure(figsize=(width, height), layout="constrained")
    grid = figure.add_gridspec(2, columns, height_ratios=(height - strip, strip))
    axes = []
    for i in range(columns):
        axes.append(figure.add_subplot(grid[0, i], sharey=axes[0] if axes and sharey else None))
        if i and sharey:
            axes[i].tick_params(labelleft=False)
    below = figure.add_subplot(grid[1, :])
    below.axis("off")
    return figure, axes, below


def legend(strip, handles, columns=4):
    strip.legend(handles=handles, loc="center", ncol=columns, columnspacing=1.6, handletextpad=0.5)


def entry(label, theme, marker="o", hue=None, hollow=False, line="none"):
    hue = hue or theme.text
    return Line2D([], [], color=hue, marker=marker, linestyle=line, label=label, markersize=7, markeredgecolor=hue,
                  markerfacecolor="none" if hollow else hue)


def marks(axes, points, gid=MARK, **style):
    """One mark a point, countable with count()."""
    if points:
        axes.scatter(*zip(*points), **style).set_gid(gid)


def count(figure, gid):
    """How many marks and bars of that gid a figure holds."""
    return sum(sum(len(one.get_offsets()) for one in axes.collections if one.get_gid() == gid)
               + sum(one.get_gid() == gid for one in axes.patches) for axes in figure.axes)


def mark_size(number):
    """Area in square points: thousands stay apart, a dozen is seen."""
    return max(7.0, min(36.0, 9000.0 / max(1, number)))


def calls(number):
    return f"{number} call" + ("" if number == 1 else "s")


def whole_ticks(axis):
    """Ticks that count calls."""
    axis.set_major_locator(MaxNLocator(integer=True, nbins=9))


STEPS = [m * 10 ** e for e in range(-6, 7) for m in (1, 2, 5)]


def log_ticks(axis, low, high, suffix="", extra=()):
    """Ticks at 1, 2, 5 times powers of ten between two bounds, thinned to at most eight; `extra` are (position, label)."""
    ticks = [step for step in STEPS if low <= step <= high]
    while len(ticks) > 8:
        ticks = [tick for tick in ticks if tick == 1 or ticks.index(tick) % 2 == ticks.index(1) % 2] if 1 in ticks else ticks[::2]
    labels = {at: f"{at:g}{suffix}" for at in ticks} | dict(extra)
    axis.set_major_locator(matplotlib.ticker.FixedLocator(sorted(labels)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: next((labels[at] for at in labels if abs(at / value - 1) < 1e-9), "")))


def png(figure):
    """The picture's bytes; the figure is gone then. No date and no version in it: the same rows give the same file."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DPI, metadata={"Software": None})
    plt.close(figure)
    return out.getvalue()
