"""stealscope-history(5) is complete: a reader written from it finds all intervals of random histories."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import history_reader

FILE = 'test_history_format.tmp'
PROGRAM = os.path.join(os.environ.get('builddir', '.'), 'tests', 'test_history')
if not os.access(PROGRAM, os.X_OK):
    print('skipped: tests/test_history is not built')
    sys.exit(77)

intervals = 0
for seed in range(1, 31):
    want = subprocess.run([PROGRAM, FILE, str(seed)], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    history = history_reader.History(FILE)
    assert want[0] == 'span %d %d' % (history.begin, history.end), seed
    got = list(history.dump())
    assert sorted(got) == sorted(want[1:]), seed
    assert len(got) == history.intervals, seed
    assert history.meta() == {b'seed': seed.to_bytes(8, 'little')}, seed
    intervals += len(got)

# The reader detects damage.
data = bytearray(open(FILE, 'rb').read())
for at in range(0, len(data), 97):
    data[at] ^= 4
    open(FILE, 'wb').write(data)
    try:
        list(history_reader.History(FILE).dump())
        sys.exit('the change of byte %d was not detected' % at)
    except history_reader.Damaged:
        pass
    data[at] ^= 4
os.unlink(FILE)
print('ok   %d intervals agree' % intervals)
assert intervals > 1000
