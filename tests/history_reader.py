"""An independent reader of history files, written from stealscope-history(5) only.

It is slow and complete: it verifies all checksums, decodes all chunks and recomputes all sums of the index."""
import bisect
import struct


class Damaged(Exception):
    pass


def crc_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def check(condition, part):
    if not condition:
        raise Damaged(part)


SECTIONS = 'chunks index attributes sets strings meta derived sums sums2'.split()
STATE, INT, STRING, REF, INNER = 0, 1, 2, 3, 7
NULL = 31


class Bits:
    """A packed array: number i is the `width` bits from bit i * width on, least significant first."""

    def __init__(self, data, width):
        self.number, self.width = int.from_bytes(data, 'little'), width

    def __getitem__(self, i):
        return self.number >> i * self.width & ((1 << self.width) - 1)


def column(data, at, n, width, exceptions):
    """Returns the numbers of a column and the offset of its end."""
    check(width <= 57 or width == 64, 'width')
    size = (n * width + 7) // 8
    packed = Bits(data[at:at + size], width)
    numbers = [packed[i] for i in range(n)]
    at += size
    if exceptions:
        positions = data[at:at + exceptions]
        high_width = data[at + exceptions]
        at += exceptions + 1
        size = (exceptions * high_width + 7) // 8
        high = Bits(data[at:at + size], high_width)
        at += size
        check(list(positions) == sorted(set(positions)), 'positions of exceptions')
        for i, position in enumerate(positions):
            numbers[position] |= high[i] << width
    check(at <= len(data), 'column')
    return numbers, at


def echo_durations(counts, start, end, leader):
    """Returns the durations, minus 1, of an echo chunk: each count is a number of intervals of the leader, another attribute;
    leader: start times of its intervals."""
    at, durations = bisect.bisect_right(leader, start) - 1, []
    check(at >= 0, 'an echo begins before its leader')
    for count in counts:
        at += count + 1
        check(count <= 4096 and at < len(leader) and leader[at] <= end, 'counts of an echo')
        durations.append(leader[at] - start - 1)
        start = leader[at]
    return durations


def chunk(data, kind, start, end, leader):
    """Returns the intervals of a chunk as [start, end, value]; None: null.  leader(): see echo_durations()."""
    n, flags, extra = data[0] + 1, data[5], data[4]
    at = 6 + (flags >> 4)
    base = int.from_bytes(data[6:at], 'little', signed=True)
    dictionary = None
    if flags & 1:
        size = data[at]
        at += 1
        dictionary = [int.from_bytes(data[at + i * size:at + (i + 1) * size], 'little') for i in range(extra)]
        at += extra * size
        extra = 0
    durations, at = column(data, at, n if flags & 4 else n - 1, data[1], data[2])
    codes, at = column(data, at, n, data[3], extra)
    check(at == len(data), 'size of a chunk')
    if flags & 8:
        check(kind != STATE and len(durations) < n, 'an echo')
        durations = echo_durations(durations, start, end, leader())
    check(len(durations) < n or sum(durations) + n == end - start + 1, 'durations of a whole chunk')
    intervals = []
    for i, code in enumerate(codes):
        if dictionary is not None:
            code = dictionary[code]
        if flags & 2:
            value = None if code == 0 else base + code - 1
        else:
            value = base + code
        if kind == STATE and value == -1:
            value = None
        last = start + durations[i] if i < n - 1 else end
        check(last >= start and last <= end, 'duration')
        intervals.append([start, last, value])
        start = last + 1
    return intervals


class History:
    def __init__(self, path):
        with open(path, 'rb') as f:
            self.data = data = f.read()
        check(data[:8] == b'\x89STLH\r\n\x1a', 'magic')
        (version, self.block, size, self.begin, self.end, self.intervals, self.chunks,
         self.attributes, self.sets, self.metas, sums2_crc) = struct.unpack_from('<IIQqqQQIIII', data, 8)
        check(version == 6 and size == len(data), 'version or size')
        check(crc32c(data[:252]) == struct.unpack_from('<I', data, 252)[0], 'checksum of the header')
        self.at, self.size, self.starts = {}, {}, {}
        end = 256
        for i, name in enumerate(SECTIONS):
            self.at[name], self.size[name] = struct.unpack_from('<QQ', data, 72 + 16 * i)
            check(0 <= self.at[name] - end < 8, 'sections')
            end = self.at[name] + self.size[name]
        check(end == size, 'sections')
        self.check_sums(sums2_crc)

    def section(self, name):
        return self.data[self.at[name]:self.at[name] + self.size[name]]

    def check_sums(self, sums2_crc):
        check(crc32c(self.section('sums2')) == sums2_crc, 'checksum of sums2')
        sums = self.section('sums')
        for i, want in enumerate(struct.iter_unpack('<I', self.section('sums2'))):
            check(crc32c(sums[i * self.block:(i + 1) * self.block]) == want[0], 'checksum of sums')
        for i, want in enumerate(struct.iter_unpack('<I', sums)):
            start, end = max(256, i * self.block), min((i + 1) * self.block, self.at['sums'])
            check(crc32c(self.data[start:end]) == want[0], 'checksum of block %d' % i)

    def string(self, number):
        strings = self.section('strings')
        return strings[number:strings.index(b'\0', number)]

    def meta(self):
        at, result = self.at['meta'], {}
        for _ in range(self.metas):
            key, value = struct.unpack_from('<II', self.data, at)
            at += 8
            result[self.data[at:at + key]] = self.data[at + key:at + key + value]
            at += key + value
        return result

    def state_names(self, number):
        at = self.at['sets'] + 136 * number
        count, = struct.unpack_from('<I', self.data, at + 4)
        return [self.string(n) for n in struct.unpack_from('<%dI' % count, self.data, at + 8)]

    def attribute(self, number):
        names = 'parent name child children chunks of index'.split()
        a = dict(zip(names, struct.unpack_from('<IIIIIIQ', self.data, self.at['attributes'] + 32 * number)))
        a['type'], a['set'], a['index'] = a['index'] & 7, a['index'] >> 48, a['index'] & 0xFFFFFFFFFFF8
        a['mask'], a['leader'] = (a['of'], 0) if a['type'] == STATE else (0, a['of'])
        return a

    def path(self, number):
        a = self.attribute(number)
        if number == 0:
            return ''
        name = self.string(a['name']).decode('utf-8', 'surrogateescape')
        return self.path(a['parent']) + '/' + name.replace('%', '%25').replace('/', '%2f')

    def starts_of(self, leader):
        """Returns the start times of the intervals of a leader, without the one before its first change."""
        if leader not in self.starts:
            check(0 < leader < self.attributes and self.attribute(leader)['type'] == STATE, 'a leader')
            a = self.attribute(leader)
            first = struct.unpack_from('<q', self.data, a['index'])[0] if a['chunks'] else self.end + 1
            self.starts[leader] = [iv[0] for iv in self.intervals_of(leader) if iv[0] >= first]
        return self.starts[leader]

    def intervals_of(self, number):
        a = self.attribute(number)
        states = [s for s in range(32) if a['mask'] >> s & 1] if a['type'] == STATE and a['chunks'] > 1 else []
        row, result, total = 16 + 8 * len(states), [], [0] * 32
        starts = [struct.unpack_from('<q', self.data, a['index'] + row * k)[0] for k in range(a['chunks'])]
        if not starts or starts[0] > self.begin:
            result.append([self.begin, (starts[0] if starts else self.end + 1) - 1, None])
        for k, start in enumerate(starts):
            at = a['index'] + row * k
            location, = struct.unpack_from('<Q', self.data, at + 8)
            sums = struct.unpack_from('<%dq' % len(states), self.data, at + 16)
            check(all(total[s] == sum_ for s, sum_ in zip(states, sums)), 'sums of the index')
            offset, size = location & (1 << 48) - 1, location >> 48
            end = starts[k + 1] - 1 if k + 1 < len(starts) else self.end
            intervals = chunk(self.data[offset:offset + size], a['type'], start, end, lambda: self.starts_of(a['leader']))
            for iv in intervals:
                if a['type'] == STATE:
                    state = NULL if iv[2] is None else iv[2]
                    check(a['mask'] >> state & 1, 'mask')
                    total[state] += iv[1] - iv[0] + 1
            result += intervals
        return result

    def dump(self):
        """Yields lines "PATH START END VALUE" of all typed attributes."""
        for number in range(self.attributes):
            a = self.attribute(number)
            if number:
                parent = self.attribute(a['parent'])
                check(0 <= number - parent['child'] < parent['children'], 'tree')
            if a['type'] == INNER:
                continue
            path, names = self.path(number), self.state_names(a['set']) if a['type'] == STATE else []
            for start, end, value in self.intervals_of(number):
                if value is None:
                    text = 'null'
                elif a['type'] == STATE:
                    text = names[value].decode()
                elif a['type'] == STRING:
                    text = '"%s"' % self.string(value).decode(errors="surrogateescape")
                elif a['type'] == REF:
                    text = '"%s"/%d' % (self.string(value >> 32).decode(), value & 0xFFFFFFFF)
                else:
                    text = str(value)
                yield '%s %d %d %s' % (path, start, end, text)
