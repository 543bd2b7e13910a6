"""A value over time, as tests of simulated truth need it."""
import bisect


class Track:
    """A value over time, from closed intervals in order."""

    def __init__(self):
        self.start, self.end, self.value = [], [], []

    def add(self, start, end, value):
        self.start.append(start)
        self.end.append(end)
        self.value.append(value)

    def at(self, t):
        """Returns (value or None, last ns for which that holds)."""
        i = bisect.bisect_right(self.start, t) - 1
        if i >= 0 and t <= self.end[i]:
            return self.value[i], self.end[i]
        return None, self.start[i + 1] - 1 if i + 1 < len(self.start) else 1 << 62

    def within(self, start, end):
        """Yields (start, end, value) of [start, end]; value None where there is no interval."""
        at = start
        for i in range(max(0, bisect.bisect_right(self.start, start) - 1), len(self.start)):
            if self.start[i] > end:
                break
            if self.end[i] < at:
                continue
            if self.start[i] > at:
                yield at, self.start[i] - 1, None
                at = self.start[i]
            last = min(end, self.end[i])
            yield at, last, self.value[i]
            at = last + 1
        if at <= end:
            yield at, end, None
