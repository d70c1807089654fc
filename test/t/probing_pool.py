"""Filters for probing.t and its programs."""

from session import hex_of
import reference as ref

KEYS = 16  # elements that are probed: 1, 2, ..., or k1, k2, ...
TYPES = ("bigint", "text")


def key(element_type, n):
    return ref.element("bigint", n) if element_type == "bigint" else ref.element("text", f"k{n}")


class Pooled:
    """A filter that programs store, and its answer for every key."""

    def __init__(self, number, family, value, element_type, members):
        self.number, self.family, self.value, self.element_type = number, family, value, element_type
        self.bytes, self.text = value.encode(), hex_of(value)
        self.members = members
        self.says = {(t, n): self.ask(t, n) for t in TYPES for n in range(1, KEYS + 1)}

    def ask(self, element_type, n):
        try:
            return "t" if self.value.contains(key(element_type, n)) else "f"
        except ref.Refused:
            return "e"


def dense(layout, k, m, fill, zeros=0):
    """Filters of random bits, each set with probability 2^-fill. With fill 0, and in the first bytes (zeros), only the
    elements' bits are set."""

    def make(rng, element_type, seed, elements):
        bits = rng.randbytes(m // 8) if fill else bytes(m // 8)
        for _ in range(fill - 1):
            bits = ref.both(bits, rng.randbytes(m // 8))
        bits = bytes(zeros) + bits[zeros:]
        return ref.Filter(layout, k, ref.single(0.01), seed, m, ref.CLASSES[element_type], None, bits).add(elements)

    return make


def sparse(layout, m, others, limit=1 << 64):
    """Filters of exact hashes, some of which (others, below a limit) belong to no key."""

    def make(rng, element_type, seed, elements):
        value = ref.Filter(layout, 6, ref.single(0.01), seed, m)
        others_ = {rng.randrange(limit) for _ in range(others)}
        value = value.add(elements).with_hashes(ref.CLASSES[element_type], others_)
        assert value.sparse and len(value.hashes) == len(elements) + others
        return value

    return make


FAMILIES = {
    # stored inline, with the short header
    "a word": dense("classic", 3, 64, 2),
    "32 bytes": dense("classic", 4, 256, 2),
    "few hashes": sparse("blocked", 1 << 13, 0),
    # inline or not
    "1 kB": dense("blocked", 4, 1 << 13, 1),
    "4 kB": dense("blocked", 4, 1 << 15, 1),
    "4 kB, odd": dense("blocked", 5, 1 << 15, 1),
    "2 kB of hashes": sparse("classic", 1 << 16, 250),
    # out of line, large enough to be read by slices
    "20 kB": dense("blocked", 6, 20 << 13, 1),
    "20 kB, odd": dense("blocked", 3, 20 << 13, 1),
    "20 kB, classic": dense("classic", 6, 20 << 13, 1),
    "20 kB of hashes": sparse("blocked", 1 << 20, 2500),
    "20 kB of near hashes": sparse("blocked", 1 << 20, 2600, 1 << 40),
    # more than the least work_mem
    "80 kB": dense("blocked", 6, 80 << 13, 1),
    "80 kB, classic": dense("classic", 4, 80 << 13, 1),
    "100 kB of hashes": sparse("classic", 1 << 23, 12500),
    # worth compressing; the first fits inline then
    "30 kB of zeros": dense("classic", 6, 30 << 13, 0),
    "80 kB, half zeros": dense("blocked", 6, 80 << 13, 1, 40 << 10),
    "200 kB of zeros": dense("blocked", 6, 200 << 13, 0),
}


def make_pool(rng):
    pool = []
    for family, make in FAMILIES.items():
        for element_type, seed in (("bigint", 0), ("bigint", 0), ("bigint", 9), ("text", 9), ("text", 9)):
            # always as many members, so that sparse filters of a family have one length
            members = sorted(rng.sample(range(1, KEYS + 1), KEYS // 2))
            value = make(rng, element_type, seed, [key(element_type, n) for n in members])
            pool.append(Pooled(len(pool) + 1, family, value, element_type, members))
    for value in (ref.empty(), ref.create("blocked", 0.01, items=1000), ref.create("classic", 0.1, items=10)):
        pool.append(Pooled(len(pool) + 1, "empty", value, "", []))
    return pool
