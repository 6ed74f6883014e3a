"""Advice as one HTML page that needs nothing else: figures are inside, no scripts, no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.figure import Figure

from driftsack.advice.words import amount, caution, percent
from driftsack.core.release import __version__
from driftsack.plot import as_data_uri, floors_figure, standings_figure, windows_figure

if TYPE_CHECKING:
    from driftsack.advice.advise import Advice

STYLE: Final = """
body { font: 16px/1.55 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; border-bottom: 1px solid #ddd; }
p.first { font-size: 1.08rem; background: #f4f7fa; border-left: 4px solid #0072B2; padding: .8rem 1rem; }
img { max-width: 100%; } table { border-collapse: collapse; font-size: .9rem; }
td, th { padding: .25rem .7rem; border-bottom: 1px solid #e5e5e5; text-align: left; }
td.number { text-align: right; white-space: nowrap; } tr.chosen { font-weight: 600; background: #fff4ec; }
pre { background: #f6f6f6; padding: .7rem; overflow-x: auto; } footer { color: #666; font-size: .8rem; margin: 3rem 0; }
"""
MEASURES: Final = {
    "v1": "how far mean rewards move from window to window",
    "v2": "the same for costs, of the resource that moves most",
    "w1": "how far mean rewards are from their average, over all rounds",
    "w2": "the same for costs",
}


def page(advice: Advice) -> str:
    """The whole page."""
    title = f"Advice on {advice.name}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="first">{escape(advice.summary)}</p>',
        *(f"<p>{escape(text)}</p>" for text in [caution(advice)] if text),
        *_means(advice),
        *_drift(advice),
        *_candidates(advice),
        *_budget(advice),
        *_premises(advice),
        f"<footer>driftsack {__version__}</footer>",
    ]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(parts) + "\n</body></html>\n"


def _means(advice: Advice) -> list[str]:
    brief, seen = advice.survey, advice.windows
    labels = (brief.arms, ("reward", *brief.resources))
    figure = windows_figure(seen.starts, (seen.low, seen.means, seen.high), advice.fit.changes, labels, brief.rows)
    pulls = zip(brief.arms, brief.pulls.tolist(), strict=True)
    told = ", ".join(f"{arm}: {count:,}" for arm, count in pulls)
    text = f"{brief.rows:,} rounds, {brief.skipped:,} of them skipped. Outcomes seen of each arm: {told}."
    return ["<h2>What the log shows</h2>", f"<p>{escape(text)}</p>", _image(figure, "Means of every arm over time")]


def _drift(advice: Advice) -> list[str]:
    seen = advice.drift
    rows = [
        [
            name.upper(),
            MEASURES[name],
            amount(one.value),
            amount(one.floor),
            amount(one.floor_high),
            percent(one.share),
        ]
        for name, one in seen.measures.items()
    ]
    bars = [(name, one.value, one.floor, one.floor_high) for name, one in seen.measures.items()]
    verdict = "is drift" if seen.found else "is no drift that the log could show"
    text = (
        f"Noise moves averages too. So the log's rows were shuffled in time {seen.shuffles} times, which destroys all "
        f"drift and keeps all noise: p = {seen.p_value:.3g} against a level of {seen.level:g}, so there {verdict}. The "
        f"measures below are those of {seen.windows} windows; what lies above the floor is real."
    )
    titles = ["measure", "what it is", "in the log", "noise floor", "95% of shuffles below", "real"]
    return [
        "<h2>Drift, and what noise alone would give</h2>",
        f"<p>{escape(text)}</p>",
        _table(titles, rows),
        _image(floors_figure(bars), "Measures of drift beside their noise floors"),
    ]


def _candidates(advice: Advice) -> list[str]:
    standings = advice.standings
    shares, low, high = (np.array([getattr(one, part) for one in standings]) for part in ("share", "low", "high"))
    chosen = standings.index(advice.recommended)
    figure = standings_figure([one.candidate.name for one in standings], shares, low, high, chosen)
    rows = [
        [
            one.candidate.name,
            one.candidate.family,
            amount(one.reward),
            percent(one.share),
            f"{percent(one.low)} to {percent(one.high)}",
        ]
        for one in standings
    ]
    spec = "\n".join(f"{name} = {value!r}" for name, value in advice.recommended.to_dict()["policy"].items())
    return [
        "<h2>Which policy</h2>",
        "<p>Each candidate was played on worlds drawn anew from the log, with its noise and your budget.</p>",
        _image(figure, "What each candidate earned"),
        _table(["candidate", "family", "reward", "of the optimum", "95% of worlds"], rows, chosen),
        f"<p>The recommended one, and how to use it in Python:</p><pre>{escape(spec)}</pre>",
        f"<pre>{escape(_use(advice))}</pre>",
    ]


def _use(advice: Advice) -> str:
    """Lines that run."""
    problem = advice.world.problem
    arms = ", ".join(f"{i}: {arm}" for i, arm in enumerate(advice.survey.arms))
    return (
        f"advice = ds.advise({advice.name!r}, budget={list(problem.budget)}, horizon={problem.horizon})\n"
        "learner = advice.policy.start(advice.world.problem, seed=0, safe=True)\n"
        f"decision = learner.ask()  # decision.arm is an index, {arms}; or decision.skipped\n"
        "learner.tell(decision, reward=..., costs=[...])  # unless it was skipped"
    )


def _budget(advice: Advice) -> list[str]:
    value, ranges, told = advice.worth, advice.ranges, advice.world.problem
    rows = [
        [
            name,
            f"{amount(told.budget[j])}",
            f"{amount(value.prices[j])} ({amount(ranges.prices[0, j])} to {amount(ranges.prices[1, j])})",
            f"{amount(value.less[j])} ({amount(ranges.less[0, j])} to {amount(ranges.less[1, j])})",
            f"{amount(value.more[j])} ({amount(ranges.more[0, j])} to {amount(ranges.more[1, j])})",
        ]
        for j, name in enumerate(advice.survey.resources)
    ]
    text = (
        f"For {told.horizon:,} rounds, in units of reward, at the optimum; in brackets, 95% of the worlds drawn anew."
    )
    titles = ["resource", "budget", "one more unit", "10% less budget", "10% more budget"]
    return ["<h2>What budget is worth</h2>", f"<p>{escape(text)}</p>", _table(titles, rows)]


def _premises(advice: Advice) -> list[str]:
    value, phases = advice.worth, len(advice.fit.changes) + 1
    rows, horizon = advice.survey.rows, advice.world.horizon
    stretched = f", stretched from {rows:,} to {horizon:,} rounds" if rows != horizon else ""
    text = (
        f"The optima behind this page: {amount(value.best)} for the best plan, {amount(value.even)} for even spending, "
        f"{amount(value.fixed)} for the best fixed mix. They are those of a world fitted to the log, with "
        f"{phases} phase{'s' * (phases > 1)} and {advice.fit.noise} outcomes{stretched}. Estimates flatter the "
        "best plan, so the first paragraph takes off what drawing worlds anew adds: "
        f"{amount(advice.ranges.expected)}. Shares of candidates are of the optima of the worlds that they played. "
        "Nobody can know from a log alone whether its course will come again: plans need that, the other policies do "
        "not. Arms that were rarely tried are known badly."
    )
    return ["<h2>What this rests on</h2>", f"<p>{escape(text)}</p>"]


def _image(figure: Figure, described: str) -> str:
    return f'<p><img alt="{escape(described)}" src="{as_data_uri(figure)}"></p>'


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]], chosen: int | None = None) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    lines = []
    for k, row in enumerate(rows):
        mark = ' class="chosen"' if k == chosen else ""
        cells = [f"<td{' class=number' * cell[:1].isdigit()}>{escape(cell)}</td>" for cell in row]
        lines.append(f"<tr{mark}>{''.join(cells)}</tr>")
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>"
