"""Rounds of all engines, one after the other, and the ratios that come of them."""

import statistics

from peers.environment import Unavailable, say
from peers.works import FIGURES


class Rounds:
    """The figures of one model: figures[work][engine] are those of each round."""

    def __init__(self, engines, num_rounds):
        self.engines = engines
        self.num_rounds = num_rounds
        self.figures = {}
        self.failures = []

    def run(self, work):
        """Interleaved: A B C A B C. An engine that fails is left out of what remains of the work."""
        rounds = self.figures.setdefault(work.name, {})
        running = []
        for engine in self.engines:
            if engine.supports(work) and self.attempt(engine, work, lambda: engine.begin(work) or {}) is not None:
                running.append(engine)
        for number in range(self.num_rounds):
            say(f"{work.name}, round {number + 1} of {self.num_rounds}: {', '.join(e.name for e in running)}")
            for engine in list(running):
                figures = self.attempt(engine, work, lambda: engine.measure(work))
                if figures is None:
                    running.remove(engine)
                    rounds.pop(engine.name, None)
                else:
                    rounds.setdefault(engine.name, []).append(figures)
        for engine in running:
            self.attempt(engine, work, lambda: engine.end(work) or {})

    def attempt(self, engine, work, action):
        try:
            return action()
        except Unavailable as error:
            self.failures.append(f"{work.name}: {error}")
            say(f"{work.name}: {error}")
            engine.close()
            return None


def median(rounds, figure):
    return statistics.median(figures[figure] for figures in rounds)


def better_peer(by_engine, figure, more_is_better):
    """The name of the peer that counts: the one with the better median. None without a peer."""
    peers = [name for name in by_engine if name != "quire"]
    if not peers:
        return None
    choose = max if more_is_better else min
    return choose(peers, key=lambda name: median(by_engine[name], figure))


def summary(work, by_engine):
    """One row for each figure of a work: each engine's values, the better peer, and how many times as good ours is."""
    rows = []
    for figure, more_is_better in FIGURES[work.kind]:
        row = {"work": work.name, "figure": figure,
               "values": {name: [figures[figure] for figures in rounds] for name, rounds in by_engine.items()}}
        peer = better_peer(by_engine, figure, more_is_better)
        if peer is not None and "quire" in by_engine:
            ratios = [ours[figure] / theirs[figure] for ours, theirs in zip(by_engine["quire"], by_engine[peer])]
            ratios = ratios if more_is_better else [1 / ratio for ratio in ratios]
            of_medians = median(by_engine["quire"], figure) / median(by_engine[peer], figure)
            row["better_peer"] = peer
            row["ratio"] = of_medians if more_is_better else 1 / of_medians
            row["ratio_min"] = min(ratios)
            row["ratio_max"] = max(ratios)
        rows.append(row)
    return rows
