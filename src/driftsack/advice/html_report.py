"""Advice as one self-contained HTML page: figures are embedded, no scripts, no network."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.figure import Figure

from driftsack.advice.answer import comparison, first_mix_text
from driftsack.advice.report_text import findings
from driftsack.advice.units import amount, of_resource, of_reward, plain_name
from driftsack.advice.warm_start import half_life
from driftsack.core.text import percent
from driftsack.plot import as_data_uri, floors_figure, standings_figure, windows_figure
from driftsack.plot.page import heading, numbered, page, paragraph, table, versions

if TYPE_CHECKING:
    from driftsack.advice.advice import Advice

MEASURES: Final = {
    "v1": "change of mean rewards from window to window",
    "v2": "change of mean costs from window to window, for the resource that changes most",
    "w1": "distance of mean rewards from their average, over all rounds",
    "w2": "distance of mean costs from their average, over all rounds",
}


def html_report(advice: Advice, learner: str) -> str:
    """Return the whole page; ``learner`` is the file of the recommended policy."""
    parts = [
        table(*comparison(advice)),
        heading("What to do"),
        numbered(advice.actions),
        heading("Why"),
        *(paragraph(text) for text in [*findings(advice), advice.caution, advice.notes] if text),
        *_means(advice),
        *_drift(advice),
        *_candidates(advice),
        *_use(advice, learner),
        *_budget(advice),
        *_assumptions(advice),
        heading("Software"),
        paragraph(f"Computed with {versions()}."),
    ]
    return page(f"Advice on {advice.name}", advice.answer, parts)


def _means(advice: Advice) -> list[str]:
    """Means of every arm over time."""
    survey, windows = advice.survey, advice.windows
    intervals = (windows.low, windows.means, windows.high)
    labels = (survey.arms, (advice.reward_name, *map(plain_name, survey.resources)))
    at = None if survey.calendar is None else survey.calendar.at
    figure = windows_figure(windows.starts, intervals, advice.fit.changes, labels, survey.rows, at)
    pulls = ", ".join(f"{arm}: {count:,}" for arm, count in zip(survey.arms, survey.pulls.tolist(), strict=True))
    text = f"{survey.rows:,} rounds, of which {survey.skipped:,} were skipped. Observed outcomes of each arm: {pulls}."
    return [heading("The log"), paragraph(text), _embedded(figure, "Means of every arm over time")]


def _drift(advice: Advice) -> list[str]:
    """The test for drift, and the measures with their noise floors."""
    drift = advice.drift
    rows = [
        [name.upper(), MEASURES[name], one.value, one.floor, one.floor_high, percent(one.share)]
        for name, one in drift.measures.items()
    ]
    bars = [(name, one.value, one.floor, one.floor_high) for name, one in drift.measures.items()]
    verdict = "drift is detected" if drift.found else "no drift is detected"
    text = (
        "Noise changes averages too. The rows of the log were therefore shuffled in time "
        f"{drift.shuffles} times, which removes all drift and keeps the noise: p = {drift.p_value:.3g} at a level of "
        f"{drift.level:g}, so {verdict}. The measures below are computed in {drift.windows} windows; the part above "
        "the noise floor is due to drift."
    )
    titles = ["measure", "definition", "in the log", "noise floor", "95% of shuffles below", "due to drift"]
    return [
        heading("Drift and noise"),
        paragraph(text),
        table(titles, rows),
        _embedded(floors_figure(bars), "Measures of drift and their noise floors"),
    ]


def _candidates(advice: Advice) -> list[str]:
    """The simulated performance of the candidates."""
    standings = advice.standings
    shares, low, high = (np.array([getattr(one, part) for one in standings]) for part in ("share", "low", "high"))
    chosen = standings.index(advice.recommended)
    figure = standings_figure([one.candidate.name for one in standings], shares, low, high, chosen)
    best = "recommended" if advice.by_context is None else "best without contexts"
    rows = [
        [
            one.candidate.name,
            one.candidate.family,
            advice.reward(one),
            percent(one.share),
            f"{percent(one.low)} to {percent(one.high)}",
            best if one is advice.recommended else "",
        ]
        for one in standings
    ]
    # Add the references without foresight.
    known = {"at an even pace": advice.present.even, "at two speeds": advice.present.two_speed}
    rows += [
        [f"present means known, {pace}", "reference", share * advice.ranges.expected, percent(share), "", ""]
        for pace, share in known.items()
    ]
    basis = "the log and its later parts"
    if advice.periods > 1:
        basis = "later periods of the log than plans were made from"
    return [
        heading("Candidate policies"),
        paragraph(
            f"Each candidate was simulated with the given budget on instances resampled from {basis}, with its noise. "
            "Rewards are shares of the optimum that the summary states. The last two rows are references, which know "
            "the means of the present round but not the future: what they miss needs foresight, and what a candidate "
            "earns less than they do is the cost of learning and of random outcomes."
        ),
        _embedded(figure, "Share of the optimum that each candidate earned"),
        table(["candidate", "family", "reward", "share of the optimum", "95% of instances", ""], rows),
    ]


def _use(advice: Advice, learner: str) -> list[str]:
    """A program that uses the recommended policy."""
    settings = advice.recommended.to_dict()["policy"] if advice.by_context is None else advice.policy.to_spec()
    spec = "\n".join(f"{name} = {value!r}" for name, value in settings.items())
    text = (
        f"driftsack advise, or advice.save({learner!r}) in Python, writes the recommended policy, started with this "
        "budget. This program runs it, where answer(name) stands for your own code: it uses the arm of that name and "
        "returns the reward and the costs."
    )
    learnt = (
        "It begins without experience, because it follows a forecast. "
        if not advice.rounds_taught
        else (
            f"It has learnt {advice.rounds_taught:,} rounds of the log{_aged(advice)}, and knows more than "
            "the simulated candidates did. "
        )
    )
    return [
        heading("Use it in Python"),
        paragraph(text),
        _code(_usage(advice, learner)),
        paragraph(f"{learnt}Its first mix: {first_mix_text(advice)}."),
        paragraph("Settings of the recommended policy:"),
        _code(spec),
    ]


def _aged(advice: Advice) -> str:
    """How much old rounds count."""
    rounds = half_life(advice.fit, advice.survey.rows)
    return "" if rounds is None else f", the weight of which halves every {rounds:,.0f} rounds"


def _usage(advice: Advice, learner: str) -> str:
    """Python code that runs the recommended policy."""
    survey = advice.survey
    costs = ", ".join(f"{name!r}: ..." for name in survey.resources)
    features = () if advice.by_context is None else advice.by_context.features
    context = f"context={{{', '.join(f'{name!r}: ...' for name in features)}}}" if features else ""
    return (
        "import driftsack as ds\n\n"
        f"learner = ds.Learner.load({learner!r})\n"
        "while not learner.done:\n"
        f"    decision = learner.ask({context})\n"
        "    if decision.skipped:\n"
        "        continue  # the budget is better kept for later\n"
        f"    reward, costs = answer(decision.name)  # such as 1.0, {{{costs}}}\n"
        "    learner.tell(decision, reward, costs)  # or learner.cancel(decision) if the outcome is lost\n"
        f"learner.save({learner!r})"
    )


def _budget(advice: Advice) -> list[str]:
    """The value of each budget."""
    value, intervals, problem = advice.worth, advice.ranges, advice.world.problem
    rows = [
        [
            plain_name(name),
            of_resource(problem.budget[j], name),
            *(
                f"{of_reward(point[j], advice.reward_name)} ({amount(interval[0, j])} to {amount(interval[1, j])})"
                for point, interval in (
                    (value.prices, intervals.prices),
                    (value.less, intervals.less),
                    (value.more, intervals.more),
                )
            ),
        ]
        for j, name in enumerate(advice.survey.resources)
    ]
    text = (
        f"Change of the optimal reward over {problem.horizon:,} rounds, with 95% intervals over the bootstrapped "
        "instances."
    )
    titles = ["resource", "budget", "one more unit", "10% less budget", "10% more budget"]
    return [heading("Value of the budget"), paragraph(text), table(titles, rows)]


def _assumptions(advice: Advice) -> list[str]:
    """The optima behind the page, and what they assume."""
    value, phases = advice.worth, len(advice.fit.changes) + 1
    rows, horizon = advice.survey.rows, advice.world.horizon
    scaled = f", scaled from {rows:,} to {horizon:,} rounds" if rows != horizon else ""
    text = (
        f"The optima behind this page are {amount(value.best)} for the best plan, {amount(value.even)} for even "
        f"spending and {amount(value.fixed)} for the best fixed mix. They are those of an instance fitted to the log, "
        f"with {phases} phase{'s' * (phases > 1)} and {advice.fit.noise} outcomes{scaled}. The optimum of a fitted "
        "instance is biased upwards; the summary subtracts the bias estimated by the bootstrap, which leaves "
        f"{amount(advice.ranges.expected)}. Shares of candidates are relative to the optima of the instances that "
        "they were simulated on. A log alone cannot show whether its course will repeat: plans assume that it does, "
        "the other policies do not. Arms that were rarely played are poorly known."
    )
    return [heading("Assumptions"), paragraph(text)]


def _embedded(figure: Figure, caption: str) -> str:
    """A figure as an SVG image inside the page."""
    text = escape(caption)
    return f'<figure><img alt="{text}" src="{as_data_uri(figure)}"><figcaption>{text}</figcaption></figure>'


def _code(text: str) -> str:
    """Preformatted text."""
    return f'<div class="scroll"><pre>{escape(text)}</pre></div>'
