package lending

import "github.com/penstock-go/penstock/internal/shared"

// Credit is units that an exact counter has lent to one lane: it has counted them already, and a
// call that spends some writes to nothing but the word of its lane. Far from the limit that is
// nearly all calls, so processors don't contend for the counter. The idea is McKenney's
// (exact limit counters: "Is Parallel Programming Hard", 5.4).
//
// The counter's owner guards what is lent by a mutex: units come and are collected under
// it, and spent without. Each change of a word changes its version. So a call that loads the
// word, then looks around, and then exchanges the word it loaded for another, knows that the
// units it spends were lent all that time. A version recurs after 2^32 changes: a call would have
// to be delayed for that many, and then find the same units.
//
// The word is version(32) | units(32). The zero value has lent nothing.
type Credit struct{ shared.Uint64 }

const (
	creditBits = 32

	// CreditUnits masks the units of a word, and is the most that there may be.
	CreditUnits = 1<<creditBits - 1
	// CreditChange is what one change adds to a word.
	CreditChange = 1 << creditBits
)

// Held is the units of a word.
func Held(word uint64) int64 { return int64(word & CreditUnits) }

// Version is the version of a word.
func Version(word uint64) uint32 { return uint32(word >> creditBits) }

// Spend takes n units if the lane still has the word that was loaded from it, which has so many.
func (c *Credit) Spend(word uint64, n int64) bool {
	return c.CompareAndSwap(word, word+CreditChange-uint64(n))
}

// Lend lends n units more to the lane, or takes back units that were spent there. It is one change.
func (c *Credit) Lend(n int64) {
	for {
		if word := c.Load(); c.CompareAndSwap(word, word+CreditChange+uint64(n)) {
			return
		}
	}
}

// Collect takes what the lane has not spent, and returns how much that was: one change, or
// none if it was nothing.
func (c *Credit) Collect() (units int64) {
	for {
		word := c.Load()
		if Held(word) == 0 { // it stays so until the owner lends again
			return 0
		}
		if c.CompareAndSwap(word, (word|CreditUnits)+1) {
			return Held(word)
		}
	}
}
