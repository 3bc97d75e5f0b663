"""The parts of bench/compare_peers that need no peer."""

import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from peers import comparison, table, works  # noqa: E402
from peers.engine import ChildEngine, Engine  # noqa: E402
from peers.environment import Unavailable  # noqa: E402

PREFILL, DECODE, MIXED = works.WORKS[0], works.WORKS[1], works.WORKS[-1]


class FiguresTest(unittest.TestCase):
    def test_percentile_is_the_nearest_rank(self):
        values = list(range(100, 0, -1))
        self.assertEqual([works.percentile(values, share) for share in (1, 50, 99, 100)], [1, 50, 99, 100])
        self.assertEqual(works.percentile([7], 50), 7)

    def test_prefill_counts_to_the_first_token(self):
        self.assertEqual(works.prefill_figures(10.0, [(12.0, 1), (20.0, 2)])["tokens_per_second"], 256)

    def test_decode_counts_from_when_all_have_begun(self):
        # Two of the first stream's tokens came before the second began, and its last message holds two.
        streams = [[(0.0, 1), (1.0, 2), (3.0, 4)], [(1.0, 1), (2.0, 2), (5.0, 3)]]
        self.assertEqual(works.decode_figures(streams)["tokens_per_second"], (2 + 2) / 4)

    def test_mixed_counts_within_its_window(self):
        streams = [[(0.0, 1), (0.5, 2), (2.0, 3), (3.0, 4), (7.0, 5)], [(1.5, 1), (2.5, 2), (6.0, 3)]]
        figures = works.mixed_figures(streams, 2, begin=1.0, end=5.0)
        # Within [1, 5]: gaps of 1 (from the window's begin), 1, 2 (to its end), 1, 2.5 (to its end).
        self.assertEqual(figures["gap_p50_ms"], 1000)
        self.assertEqual(figures["gap_p99_ms"], 2500)
        self.assertEqual(figures["decode_tokens_per_second"], 3 / 4)
        self.assertEqual(figures["prefill_tokens_per_second"], 2 * 512 / 4)


class SummaryTest(unittest.TestCase):
    def test_the_better_peer_counts(self):
        rounds = {"quire": [{"tokens_per_second": value} for value in (20, 30, 40)],
                  "slow": [{"tokens_per_second": value} for value in (1, 1, 1)],
                  "fast": [{"tokens_per_second": value} for value in (10, 10, 20)]}
        row, = comparison.summary(PREFILL, rounds)
        self.assertEqual(row["better_peer"], "fast")
        self.assertEqual((row["ratio"], row["ratio_min"], row["ratio_max"]), (3, 2, 3))

    def test_of_a_gap_less_is_better(self):
        def figures(gap):
            return {"gap_p99_ms": gap, "gap_p50_ms": gap, "decode_tokens_per_second": 1, "prefill_tokens_per_second": 1}

        row = comparison.summary(MIXED, {"quire": [figures(10)], "slow": [figures(50)], "fast": [figures(20)]})[0]
        self.assertEqual((row["better_peer"], row["ratio"]), ("fast", 2))

    def test_without_a_peer_there_is_no_ratio(self):
        row, = comparison.summary(PREFILL, {"quire": [{"tokens_per_second": 1}]})
        self.assertNotIn("ratio", row)
        self.assertIn("| - |", table.as_markdown([row], ["quire", "fast"]))


class FakeEngine(Engine):
    def __init__(self, name, trace, fails_at=None):
        self.name, self.trace, self.fails_at = name, trace, fails_at
        self.num_measured = 0

    def begin(self, work):
        if self.fails_at == 0:
            raise Unavailable(f"{self.name} does not load")

    def measure(self, work):
        self.num_measured += 1
        if self.num_measured == self.fails_at:
            raise Unavailable(f"{self.name} failed")
        self.trace.append(self.name)
        return {"tokens_per_second": 1.0}

    def close(self):
        self.trace.append(f"close {self.name}")


class RoundsTest(unittest.TestCase):
    def test_engines_take_turns(self):
        trace = []
        rounds = comparison.Rounds([FakeEngine(name, trace) for name in "abc"], 2)
        rounds.run(PREFILL)
        self.assertEqual(trace, list("abcabc"))
        self.assertEqual([len(figures) for figures in rounds.figures[PREFILL.name].values()], [2, 2, 2])

    def test_one_that_fails_is_left_out_and_the_others_go_on(self):
        trace = []
        engines = [FakeEngine("a", trace), FakeEngine("b", trace, fails_at=0), FakeEngine("c", trace, fails_at=2)]
        rounds = comparison.Rounds(engines, 3)
        rounds.run(DECODE)
        self.assertEqual(trace, ["close b", "a", "c", "a", "close c", "a"])
        self.assertEqual(list(rounds.figures[DECODE.name]), ["a"])
        self.assertEqual(rounds.failures, [f"{DECODE.name}: b does not load", f"{DECODE.name}: c failed"])


class ChildEngineTest(unittest.TestCase):
    def engine(self, program, timeout_seconds=30):
        engine = ChildEngine([sys.executable, "-c", program], timeout_seconds)
        engine.name = "child"
        self.addCleanup(engine.close)
        return engine

    def test_answers_come_back(self):
        engine = self.engine("import sys\nfor _ in sys.stdin: print('{\"figures\": {\"x\": 1}}', flush=True)")
        self.assertEqual([engine.measure(DECODE) for _ in range(2)], [{"x": 1}, {"x": 1}])

    def test_failures_are_sentences(self):
        cases = (("print('{\"error\": \"no such type\"}', flush=True); input(); input()", 30, "child: no such type"),
                 ("import sys; input(); sys.exit(7)", 30, "child ended with exit code 7"),
                 ("input(); input()", 0.2, "child did not answer within 0.2 s"))
        for program, timeout_seconds, sentence in cases:
            with self.subTest(sentence), self.assertRaises(Unavailable) as raised:
                self.engine(program, timeout_seconds).measure(DECODE)
            self.assertEqual(str(raised.exception), sentence)


class CommandTest(unittest.TestCase):
    def check_refused(self, sentence, program, *flags):
        done = subprocess.run([sys.executable, str(ROOT / "bench" / program), *flags], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(sentence, done.stderr)

    def test_bad_flags_are_refused(self):
        self.check_refused("--model is missing", "compare_peers")
        self.check_refused("--work: got 'all', expected one of: prefill 512, ", "compare_peers", "--work", "all")
        self.check_refused("--rounds: got 0, expected an integer of at least 1", "compare_peers", "--rounds", "0")
        self.check_refused("--timeout: got -1, expected seconds above 0", "compare_peers", "--timeout=-1")
        self.check_refused("--programs: no quire-bench in /nowhere", "compare_peers", "--model", "x", "--programs",
                           "/nowhere")
        self.check_refused("--tokenizer: no file /nowhere", "make_model", "--tokenizer", "/nowhere", "--type", "q8_0",
                           "--output", "x")
        self.check_refused("--seed: got -1, expected an integer in [0, 2^64)", "make_model", "--tokenizer", "/nowhere",
                           "--type", "q8_0", "--output", "x", "--seed", "-1")


if __name__ == "__main__":
    unittest.main()
