"""What the cases of `script/bench peers` share: steps that report their progress, and results as a table and as CSV.

A module of cases has a function steps(rows), which returns its steps in the order in which they run. The results of
a module go to bench/results/peers_MODULE.csv, when its last step has ended.
"""
import csv
import os
import statistics
import sys
import time
import typing

DIRECTORY = os.environ.get("RESULTS") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "results")
COLUMNS = ("case", "peer", "elements", "metric", "unit", "minimum", "median", "maximum",
           "ratio_minimum", "ratio_median", "ratio_maximum")  # fmt: skip


class Step(typing.NamedTuple):
    title: str
    weight: float  # expected share of the time, in any unit that is the same for all steps of all modules: seconds
    run: typing.Callable  # takes the Results of the module


def spread(values):
    return min(values), statistics.median(values), max(values)


class Results:
    """The results of a module. Each has the ratio of a peer's figure to that of the reference, which is the first peer
    of a comparison: above 1 the reference is faster or smaller."""

    def __init__(self, module):
        self.module, self.rows = module, []

    def compare(self, case, elements, metric, unit, peers, repeats=5):
        """Runs the peers by turns, after one round to warm up. peers maps a name to a function that returns the
        figure in the given unit."""
        rounds = [{peer: run() for peer, run in peers.items()} for _ in range(repeats + 1)][1:]
        reference = next(iter(peers))
        for peer in peers:
            ratios = [figures[peer] / figures[reference] for figures in rounds]
            self.add(case, peer, elements, metric, unit, [figures[peer] for figures in rounds], ratios)

    def figures(self, case, elements, metric, unit, peers):
        """Adds figures that do not vary, such as bytes. peers maps a name to the figure."""
        reference = next(iter(peers.values()))
        for peer, figure in peers.items():
            self.add(case, peer, elements, metric, unit, [figure], [figure / reference] if reference else [])

    def add(self, case, peer, elements, metric, unit, figures, ratios):
        row = [case, peer, "%d" % elements, metric, unit, *("%.6g" % figure for figure in spread(figures)),
               *("%.4g" % ratio for ratio in (spread(ratios) if ratios else ()))]  # fmt: skip
        self.rows.append(row + [""] * (len(COLUMNS) - len(row)))
        print("%-42s %-30s %11s  %-20s %10s %-6s   %s" % (
            case, peer, "{:,}".format(elements), metric, "%.4g" % statistics.median(figures), unit,
            " ".join("%7.2f" % ratio for ratio in spread(ratios)) if ratios else ""), flush=True)  # fmt: skip

    def write(self):
        os.makedirs(DIRECTORY, exist_ok=True)
        with open(os.path.join(DIRECTORY, "peers_%s.csv" % self.module), "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(self.rows)


def minutes(seconds):
    return "%d:%02d" % divmod(round(seconds), 60)


def heading():
    print("%-42s %-30s %11s  %-20s %10s %-6s   %s" % (
        "case", "peer", "elements", "metric", "median", "unit", "ratio min/med/max"))  # fmt: skip


def run(modules, rows):
    """Runs all steps of the modules, a dictionary from names to modules, and says on stderr what runs, how far it
    is, and how long the rest may take."""
    plans = {name: module.steps(rows) for name, module in modules.items()}
    total = sum(step.weight for plan in plans.values() for step in plan)
    number, done, start = 0, 0, time.monotonic()
    heading()
    for name, plan in plans.items():
        results = Results(name)
        for step in plan:
            number += 1
            elapsed = time.monotonic() - start
            left = "" if done == 0 else ", about %s left" % minutes(elapsed / done * (total - done))
            print("[%d/%d] %s: %s (%d %%, %s elapsed%s)" % (
                number, sum(map(len, plans.values())), name, step.title, 100 * done / total, minutes(elapsed), left),
                file=sys.stderr, flush=True)  # fmt: skip
            step.run(results)
            done += step.weight
        results.write()
