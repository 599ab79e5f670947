"""Interval rows in preallocated memory, printed or sent after the test."""

from array import array

# fields of a row; a count above 2**29 is kept as hi * 2**29 + lo
_W = 13
_LO = 1 << 29


class Ring:
    """The newest `rows` interval rows; `dropped` counts the older ones that had to go."""

    def __init__(self, rows):
        self.rows = rows
        self.a = array("i", bytes(4 * rows * _W))
        self.count = 0

    @property
    def dropped(self):
        return max(0, self.count - self.rows)

    def put(self, id, sender, omitted, s0, us0, s1, us1, b_hi, b_lo, pkts, lost, ooo, jit, retries, nomem):
        """Take one row in; allocates nothing for counts below 2**30."""
        a = self.a
        i = (self.count % self.rows) * _W
        a[i] = id << 2 | (1 if sender else 0) | (2 if omitted else 0)
        a[i + 1] = s0
        a[i + 2] = us0
        a[i + 3] = s1
        a[i + 4] = us1
        a[i + 5] = b_hi
        a[i + 6] = b_lo
        a[i + 7] = pkts
        a[i + 8] = lost
        a[i + 9] = ooo
        a[i + 10] = jit
        a[i + 11] = retries
        a[i + 12] = nomem
        self.count += 1

    def __len__(self):
        return min(self.count, self.rows)

    def row(self, k):
        """Row k (0 is the oldest kept) as the INTERVAL of docs/contracts.md, section 3."""
        if self.count > self.rows:
            k = (self.count + k) % self.rows
        a = self.a
        i = k * _W
        f = a[i]
        return {
            "id": f >> 2, "sender": bool(f & 1), "omitted": bool(f & 2),
            "start_us": a[i + 1] * 1000000 + a[i + 2], "end_us": a[i + 3] * 1000000 + a[i + 4],
            "bytes": a[i + 5] * _LO + a[i + 6], "packets": a[i + 7], "lost": a[i + 8], "ooo": a[i + 9],
            "jitter_us": a[i + 10], "retries": a[i + 11], "enomem": a[i + 12],
        }  # fmt: skip

    def last(self):
        return self.row(len(self) - 1)
