package sketch

import (
	"cmp"
	"container/heap"
	"math"
	"math/bits"
	"slices"
)

// Frequent finds the most frequent texts, by the space-saving algorithm: it keeps a fixed number of
// them, and a new text takes the place of the rarest one and its count. So counts are exact while
// there is room, and never too low; Extra bounds the error.
type Frequent struct {
	most  int
	index map[string]*counter
	heap  counters
	order int64
}

// Text is a text and its count.
type Text struct {
	Text  string
	Count int64
	Extra int64 // part of the count that may be of other texts
}

type counter struct {
	Text
	at    int   // in the heap
	order int64 // of equal counts, the oldest text leaves
}

type counters []*counter

func (c counters) Len() int { return len(c) }
func (c counters) Less(i, j int) bool {
	return c[i].Count < c[j].Count || c[i].Count == c[j].Count && c[i].order < c[j].order
}
func (c counters) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].at, c[j].at = i, j
}
func (c *counters) Push(x any) {
	x.(*counter).at = len(*c)
	*c = append(*c, x.(*counter))
}
func (c *counters) Pop() any { panic("counters never shrink") }

// NewFrequent returns a Frequent that keeps a number of texts. Any text that is more than one in that
// number is among them.
func NewFrequent(most int) *Frequent {
	return &Frequent{most: most, index: make(map[string]*counter)}
}

// Add counts a text n times.
func (f *Frequent) Add(text string, n int64) {
	f.order++
	if c := f.index[text]; c != nil {
		c.Count += n
		heap.Fix(&f.heap, c.at)
		return
	}
	if len(f.heap) < f.most {
		c := &counter{Text: Text{Text: text, Count: n}, order: f.order}
		f.index[text] = c
		heap.Push(&f.heap, c)
		return
	}
	c := f.heap[0]
	delete(f.index, c.Text.Text)
	f.index[text] = c
	c.Text, c.order = Text{text, c.Count + n, c.Count}, f.order
	heap.Fix(&f.heap, 0)
}

// Top returns up to n texts, the most frequent first.
func (f *Frequent) Top(n int) []Text {
	all := make([]Text, 0, len(f.heap))
	for _, c := range f.heap {
		all = append(all, c.Text)
	}
	slices.SortFunc(all, func(a, b Text) int {
		return cmp.Or(cmp.Compare(b.Count-b.Extra, a.Count-a.Extra), cmp.Compare(a.Text, b.Text))
	})
	return all[:min(n, len(all))]
}

// Distinct counts different texts: exactly up to 4096, then by HyperLogLog, with a standard error of
// 0.8 %. The zero value is ready for use.
type Distinct struct {
	exact     map[uint64]struct{}
	registers []uint8
}

const (
	maxExact      = 4096
	registerBits  = 14
	registerCount = 1 << registerBits
)

// Add counts a text.
func (d *Distinct) Add(text string) {
	h := Hash(0, text)
	if d.registers == nil {
		if _, counted := d.exact[h]; counted {
			return
		}
		if len(d.exact) < maxExact {
			if d.exact == nil {
				d.exact = make(map[uint64]struct{})
			}
			d.exact[h] = struct{}{}
			return
		}
		d.registers = make([]uint8, registerCount)
		for h := range d.exact {
			d.register(h)
		}
		d.exact = nil
	}
	d.register(h)
}

func (d *Distinct) register(h uint64) {
	i := h >> (64 - registerBits)
	zeros := uint8(bits.LeadingZeros64(h<<registerBits|1<<(registerBits-1))) + 1
	d.registers[i] = max(d.registers[i], zeros)
}

// Exact reports whether Count is exact.
func (d *Distinct) Exact() bool { return d.registers == nil }

// Count returns the number of different texts.
func (d *Distinct) Count() int64 {
	if d.registers == nil {
		return int64(len(d.exact))
	}
	const m = registerCount
	sum, empty := 0.0, 0
	for _, r := range d.registers {
		sum += math.Ldexp(1, -int(r))
		if r == 0 {
			empty++
		}
	}
	estimate := 0.7213 / (1 + 1.079/m) * m * m / sum
	if estimate < 2.5*m && empty > 0 {
		estimate = m * math.Log(m/float64(empty))
	}
	return int64(math.Round(estimate))
}

// Hash adds a text to the hash of texts before it, 0 if there are none. It is FNV-1a with a
// finalizer, which spreads similar texts, and the same in every process, so that results are.
func Hash(h uint64, text string) uint64 {
	h ^= 14695981039346656037
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
