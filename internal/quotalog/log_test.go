package quotalog

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// memory is a file system in memory that can lose everything that isn't on the disk.
type memory struct {
	disk, written []byte
	fail          error
	replaced      int
}

func (m *memory) read() ([]byte, error) { return bytes.Clone(m.disk), nil }

func (m *memory) replace(contents []byte) (file, error) {
	if m.fail != nil {
		return nil, m.fail
	}
	m.disk = bytes.Clone(contents)
	m.written, m.replaced = bytes.Clone(contents), m.replaced+1
	return m, nil
}

func (m *memory) unlock() error { return nil }
func (m *memory) Close() error  { return nil }

func (m *memory) Write(b []byte) (int, error) {
	if m.fail != nil {
		m.written = append(m.written, b[:len(b)/2]...)
		return len(b) / 2, m.fail
	}
	m.written = append(m.written, b...)
	return len(b), nil
}

func (m *memory) Sync() error {
	if m.fail == nil {
		m.disk = bytes.Clone(m.written)
	}
	return m.fail
}

// crash loses a part of the bytes that are not on the disk.
func (m *memory) crash(rng *rand.Rand) {
	if n := len(m.written) - len(m.disk); n > 0 && bytes.HasPrefix(m.written, m.disk) {
		m.disk = bytes.Clone(m.written[:len(m.disk)+rng.IntN(n+1)])
	}
}

func openMemory(t testing.TB, m *memory, now *int64) *Log {
	t.Helper()
	l, err := open(m, func() int64 { return *now }, func(err error) { t.Error(err) })
	require.NoError(t, err)
	l.mu.Lock()
	l.manual = true
	l.mu.Unlock()
	return l
}

// key counts as a meter does.
type key struct {
	e      *Entry
	period Period
	used   int64
}

func (k *key) take(p Period, now, n, limit int64) bool {
	k.e = k.e.Current(now)
	if first := k.period == (Period{}); first || p.ID > k.period.ID {
		k.period, k.used = p, k.e.Base(first, p.Start, now)
	}
	if k.used > limit-n || !k.e.Take(k.period, now, k.used, n, limit) {
		return false
	}
	k.used += n
	return true
}

func (k *key) settle(n int64) {
	k.used += n
	k.e.Settle(k.period, k.used)
}

var day1 = Period{ID: 1000, Start: 1000, End: 2000}

func TestMargin(t *testing.T) {
	for limit, want := range map[int64]int64{0: 1, 1: 1, 10: 1, 19: 1, 20: 2, 100: 10, 160: 16, 1600: 16, 1700: 17, 1_000_000: 10_000} {
		assert.Equal(t, want, Margin(limit), limit)
	}
}

// A key takes its slack, then waits for marks; after a crash it is charged with its mark, and after
// a close with its use.
func TestMarks(t *testing.T) {
	now, m := int64(1500), new(memory)
	l := openMemory(t, m, &now)
	k := key{e: l.Book("b", 10).Entry("k", 0)}
	assert.False(t, k.take(day1, now, 1, 100), "the slack is not on the disk")
	require.NoError(t, l.Flush())
	for range 11 { // the mark of the refused call
		require.True(t, k.take(day1, now, 1, 100))
	}
	assert.False(t, k.take(day1, now, 1, 100))
	require.NoError(t, l.Flush())
	assert.True(t, k.take(day1, now, 1, 100))

	l = openMemory(t, m, &now) // after a crash
	b := l.Book("b", 10)
	require.NoError(t, l.Flush())
	k = key{e: b.Entry("k", 0)}
	assert.False(t, k.take(day1, now, 1, 100), "the mark is used up")
	charged := k.used
	assert.Equal(t, int64(22), charged, "12 used")
	unknown := key{e: b.Entry("unknown", 0)}
	assert.False(t, unknown.take(day1, now, 1, 100))
	assert.Equal(t, int64(10), unknown.used)
	require.NoError(t, l.Flush())
	assert.True(t, k.take(day1, now, 1, 100))
	assert.True(t, unknown.take(day1, now, 1, 100))
	require.NoError(t, l.Close())
	assert.False(t, k.take(day1, now, 1, 100), "the log is closed")
	late := key{e: b.Entry("late", 0)}
	assert.False(t, late.take(day1, now, 1, 100), "the log is closed")

	l = openMemory(t, m, &now)
	b = l.Book("b", 10)
	require.NoError(t, l.Flush())
	k = key{e: b.Entry("k", 0)}
	assert.True(t, k.take(day1, now, 1, 100), "the slack, beyond the exact use")
	assert.Equal(t, charged+2, k.used)
	now = 2500
	k2 := Period{ID: 2000, Start: 2000, End: 3000}
	assert.True(t, k.take(k2, now, 1, 100))
	assert.Equal(t, int64(1), k.used)
}

// While the disk fails, keys stay at their marks. Then the file is written anew, as it may end in
// part of a record.
func TestADiskThatFails(t *testing.T) {
	now, m := int64(1500), new(memory)
	l := openMemory(t, m, &now)
	k := key{e: l.Book("b", 10).Entry("k", 0)}
	require.NoError(t, l.Flush())
	m.fail = errors.New("full")
	taken := int64(0)
	for range 50 {
		if k.take(day1, now, 1, 1000) {
			taken++
		}
		_ = l.Flush()
	}
	assert.Equal(t, int64(10), taken)
	assert.ErrorContains(t, l.Flush(), "full")
	replaced := m.replaced
	m.fail = nil
	require.NoError(t, l.Flush())
	assert.Equal(t, replaced+1, m.replaced)
	assert.True(t, k.take(day1, now, 1, 1000))
}

// The log stays small: its size is bounded by the keys in periods that are not over.
func TestCompaction(t *testing.T) {
	now, m := int64(1500), new(memory)
	l := openMemory(t, m, &now)
	keys := make([]key, 100)
	for i := range keys {
		keys[i].e = l.Book("b", 10).Entry(strconv.Itoa(i), 0)
	}
	require.NoError(t, l.Flush())
	for day := range int64(5) {
		p := Period{ID: 1000 * (day + 1), Start: 1000 * (day + 1), End: 1000 * (day + 2)}
		now = p.Start + 500
		for range 300 {
			for i := range keys {
				keys[i].take(p, now, 10, 100_000)
				keys[i].take(p, now, 1000, 100_000)
			}
			require.NoError(t, l.Flush())
			require.Less(t, len(m.disk), 2*100*64+2*grows)
		}
	}
	assert.Greater(t, m.replaced, 5)
	now = 100_000
	l = openMemory(t, m, &now)
	assert.Less(t, len(m.disk), 100, "all periods are over")
	assert.Empty(t, l.Book("b", 10).entries)
}

// Whatever stands in the file, no key is charged with less than its latest record that is whole, and
// no more than any says.
func FuzzOpen(f *testing.F) {
	whole := []byte(magic)
	for i := range int64(5) {
		whole = record{kind: markOf, book: "b", key: strconv.FormatInt(i%2, 10), a: 2000, b: 10 * (i + 1)}.append(whole)
	}
	f.Add(whole, 40, byte(1))
	f.Add(record{kind: closed}.append(whole), 90, byte(0))
	f.Add([]byte("a quota log"), 0, byte(0))
	f.Fuzz(func(t *testing.T, contents []byte, at int, flip byte) {
		if at >= 0 && at < len(contents) {
			contents[at] ^= flip
		}
		now, m := int64(1500), &memory{disk: contents}
		l, err := open(m, func() int64 { return now }, func(error) {})
		if err != nil {
			return
		}
		again, err := open(m, func() int64 { return now }, func(error) {})
		require.NoError(t, err)
		for name, b := range l.books {
			for k, e := range b.entries {
				other := again.books[name].entries[k]
				require.NotNil(t, other)
				require.GreaterOrEqual(t, other.restored, e.restored)
			}
		}
	})
}

// A record that the disk lost, or has changed, leaves the others.
func TestDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	whole, starts := []byte(magic), []int{}
	for i := range int64(20) {
		starts = append(starts, len(whole))
		whole = record{kind: markOf, book: "b", key: strconv.FormatInt(i, 10), a: 2000, b: i + 1}.append(whole)
	}
	starts = append(starts, len(whole))
	now := int64(1500)
	for range 500 {
		contents := bytes.Clone(whole)
		end := starts[0] + rng.IntN(len(whole)-starts[0]+1)
		at := starts[0] + rng.IntN(len(whole)-starts[0])
		contents[at] ^= byte(1 + rng.IntN(255))
		l, err := open(&memory{disk: contents[:end]}, func() int64 { return now }, func(error) {})
		require.NoError(t, err)
		for i := range 20 {
			if starts[i+1] <= end && (at < starts[i] || at >= starts[i+1]) {
				e := l.books["b"].entries[strconv.Itoa(i)]
				require.NotNil(t, e, "%d of %d bytes, damage at %d", i, end, at)
				require.Equal(t, int64(i+1), e.restored)
			}
		}
	}
	_, err := open(&memory{disk: []byte("flow:\n")}, func() int64 { return now }, func(error) {})
	assert.ErrorContains(t, err, "no quota log")
}

// Two processes can't share a log.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quotas")
	now := func() int64 { return 1500 }
	l, err := Open(path, now, func(error) {})
	require.NoError(t, err)
	_, err = Open(path, now, func(error) {})
	assert.ErrorContains(t, err, "is used by another process")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, l.Close())
	l, err = Open(path, now, func(error) {})
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err = Open(filepath.Join(path, "none", "quotas"), now, func(error) {})
	assert.Error(t, err)
}

// Over all lives of a process that crashes and closes at random, no key takes more than its limit in a
// period, and too much is charged only as stated.
func TestLives(t *testing.T) {
	crashes, taken, waited := 0, int64(0), 0
	for seed := range uint64(300) {
		h := newLives(t, seed)
		for range 400 {
			h.step()
		}
		crashes, taken, waited = crashes+h.crashes, taken+h.taken, waited+h.waited
	}
	t.Logf("%d crashes, %d units taken, %d calls waited for a mark", crashes, taken, waited)
	assert.Greater(t, crashes, 1000)
	assert.Greater(t, taken, int64(10_000))
}

type lives struct {
	*rand.Rand
	t          *testing.T
	m          *memory
	l          *Log
	now, limit int64
	keys       []life
	crashes    int
	taken      int64
	waited     int
}

// life is a key, and the units that it has taken in the period over all lives.
type life struct {
	key
	period Period
	taken  int64
	open   []int64 // units of calls that may be given back in this life
	back   int64   // units given back since the latest write
}

func newLives(t *testing.T, seed uint64) *lives {
	h := &lives{Rand: rand.New(rand.NewPCG(seed, 7)), t: t, m: new(memory), now: 1500}
	h.limit = []int64{5, 30, 300, 5000}[h.IntN(4)]
	h.keys = make([]life, 3)
	h.begin()
	return h
}

func (h *lives) begin() {
	h.l = openMemory(h.t, h.m, &h.now)
	b := h.l.Book("b", Margin(h.limit))
	if h.IntN(4) > 0 {
		require.NoError(h.t, h.l.Flush())
	}
	for i := range h.keys {
		h.keys[i].key, h.keys[i].open = key{e: b.Entry(strconv.Itoa(i), 0)}, nil
	}
}

func (h *lives) period() Period {
	start := h.now / 1000 * 1000
	return Period{ID: start, Start: start, End: start + 1000}
}

func (h *lives) step() {
	p := h.period()
	k := &h.keys[h.IntN(len(h.keys))]
	if k.period != p {
		k.period, k.taken, k.open = p, 0, nil
	}
	switch n := h.IntN(100); {
	case n < 70:
		units := 1 + h.Int64N(max(1, h.limit/20))
		used := k.used
		if ok := k.take(p, h.now, units, h.limit); ok {
			k.taken += units
			h.taken += units
			k.open = append(k.open, units)
			require.LessOrEqual(h.t, k.taken, h.limit)
		} else if used <= h.limit-units {
			h.waited++
		}
		require.GreaterOrEqual(h.t, k.used, k.taken, "charged less than was taken")
	case n < 80:
		if len(k.open) > 0 && k.key.period == p {
			back := k.open[len(k.open)-1]
			k.open = k.open[:len(k.open)-1]
			k.taken -= back
			k.settle(-back)
			k.back += back
		}
	case n < 93:
		require.NoError(h.t, h.l.Flush())
		for i := range h.keys {
			h.keys[i].back = 0
		}
	case n < 95:
		h.now += h.Int64N(400)
	case n < 97:
		require.NoError(h.t, h.l.Close())
		h.begin()
	default:
		before := make([]int64, len(h.keys))
		for i := range h.keys {
			if before[i] = h.keys[i].used; h.keys[i].key.period != p { // not in this life
				before[i] = h.keys[i].e.Base(h.keys[i].key.period == Period{}, p.Start, h.now)
			}
		}
		h.m.crash(h.Rand)
		h.crashes++
		h.begin()
		most := 3*Margin(h.limit) + max(1, h.limit/20) // as docs/rules/quotas.md says: margins, and a call that waits
		for i := range h.keys {
			require.LessOrEqual(h.t, h.keys[i].e.Base(true, p.Start, h.now), before[i]+most+h.keys[i].back)
		}
	}
}
