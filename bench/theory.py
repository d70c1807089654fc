"""What doc/format.md's mathematics predict for filters of random elements: rates, and errors of the estimates.

Nothing here calls the extension or its core. Sizes of blocks and mean rates of blocked filters are those of
test/golden/reference.py, which was written from doc/format.md alone.
"""
import decimal
import math
import os
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "golden"))
import reference  # noqa: E402


def is_sparse(elements, m):
    return 8 * elements < m / 8


def classic_rate(k, m, n):
    """The probability that k throws hit only bits that k * n earlier throws have hit, without approximation: of e
    given bits all are hit with a probability that inclusion and exclusion give."""
    with decimal.localcontext(decimal.Context(prec=80)):
        missed = [(1 - decimal.Decimal(i) / m) ** (k * n) for i in range(k + 1)]
        covered = [sum((-1) ** i * math.comb(e, i) * missed[i] for i in range(e + 1)) for e in range(k + 1)]
        distinct = reference.BlockRates(m, k).distinct
        return float(sum(decimal.Decimal(distinct[e]) * covered[e] for e in range(1, k + 1)))


def rate(layout, k, m, n):
    """The expected false-positive rate of a filter of n elements. Its sparse form is wrong only where hashes are
    equal."""
    if is_sparse(n, m):
        return math.ldexp(n, -64)
    return classic_rate(k, m, n) if layout == "classic" else reference.expected_rate(layout, k, m, n)


class Estimates:
    """Standard deviations of the estimates, to first order in the numbers of bits that are not set.

    An element leaves one given bit unset with probability q. The numbers of unset bits of two sets vary together
    because the same elements, and elements in the same block, leave two bits unset.
    """

    def __init__(self, layout, k, m):
        self.m, (self.bits, blocks) = m, reference.geometry(layout, m)
        taken = -math.expm1(k * math.log1p(-1 / self.bits)) / blocks
        both = -math.expm1(k * math.log1p(-2 / self.bits)) / blocks
        self.log_q = math.log1p(-taken)
        self.same_block = math.log1p(-both) - 2 * self.log_q
        self.other_block = math.log1p(-((taken / (1 - taken)) ** 2))

    def covariance(self, a, b, common):
        """Of the estimated cardinalities of sets of a and b elements, `common` of them in both."""
        unset_in_either = math.exp(-self.log_q * common)
        pairs = (unset_in_either - 1 + (self.bits - 1) * math.expm1(common * self.same_block)
                 + (self.m - self.bits) * math.expm1(common * self.other_block))  # fmt: skip
        return pairs / self.m / self.log_q**2

    def deviation(self, estimate, size, common):
        """For two sets of `size` elements, `common` of them in both; cardinality is that of one set."""
        united = 2 * size - common  # an intersection is not clamped here
        one, both = self.covariance(size, size, size), self.covariance(united, united, united)
        if estimate == "cardinality":
            return math.sqrt(one)
        if estimate == "union":
            return math.sqrt(both)
        if common == size:
            return 0 if estimate == "jaccard" else math.sqrt(one)
        pair, part = self.covariance(size, size, common), self.covariance(size, united, size)
        intersection = 2 * one + both + 2 * pair - 4 * part
        if estimate == "intersection":
            return math.sqrt(max(intersection, 0))
        similarity, against = common / united, 2 * part - both
        return math.sqrt(max(intersection + similarity**2 * both - 2 * similarity * against, 0)) / united


def bits_per_element(p):
    """Of filters at rate p: what no structure can fall below, the classic formula, and the published figures of two
    kinds with fingerprints, whose whole numbers of bits this leaves out: cuckoo filters of 4 entries a bucket at a
    load of 95.5 % (Fan et al. 2014), and xor filters (Graf and Lemire 2020)."""
    bound = -math.log2(p)
    return {"bound": bound, "classic_formula": bound / math.log(2), "cuckoo": (bound + 3) / 0.955, "xor": 1.23 * bound}
