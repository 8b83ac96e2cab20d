package lending

import "github.com/penstock-go/penstock/internal/shared"

// Credit holds the units that an exact counter has lent to one lane. The counter has counted them
// already, and a call that spends some writes only to the word of its lane. Far from the limit
// nearly all calls do so, and processors don't contend for the counter. The idea is McKenney's
// (exact limit counters: "Is Parallel Programming Hard", 5.4).
//
// A mutex of the counter's owner guards lending: units are lent and collected under it, and spent
// without. Each change of a word changes its version. So if a call loads the word, then reads other
// state, and then exchanges the loaded word for another, the units it spends were lent throughout.
// A version recurs after 2^32 changes: to be misled, a call would have to be delayed for that many,
// and then find the same units.
//
// The word is version(32) | units(32). The zero value has lent nothing.
type Credit struct{ shared.Uint64 }

const (
	creditBits = 32

	// CreditUnits masks the units of a word, and is their maximum.
	CreditUnits = 1<<creditBits - 1
	// CreditChange is the increment of a word's version.
	CreditChange = 1 << creditBits
)

// Held returns the units of a word.
func Held(word uint64) int64 { return int64(word & CreditUnits) }

// Version returns the version of a word.
func Version(word uint64) uint32 { return uint32(word >> creditBits) }

// Spend takes n units if the lane's word still equals word, which must hold at least n.
func (c *Credit) Spend(word uint64, n int64) bool {
	return c.CompareAndSwap(word, word+CreditChange-uint64(n))
}

// Lend lends n more units to the lane, or returns units that were spent there. It is one change.
func (c *Credit) Lend(n int64) {
	for {
		if word := c.Load(); c.CompareAndSwap(word, word+CreditChange+uint64(n)) {
			return
		}
	}
}

// Collect takes and returns the units that the lane has not spent: one change, or none if there are
// none.
func (c *Credit) Collect() (units int64) {
	for {
		word := c.Load()
		if Held(word) == 0 { // it stays empty until the owner lends again
			return 0
		}
		if c.CompareAndSwap(word, (word|CreditUnits)+1) {
			return Held(word)
		}
	}
}
