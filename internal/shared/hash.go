//go:build !sim

package shared

import "hash/maphash"

var seed = maphash.MakeSeed()

// Hash returns a hash of a text that can't be predicted outside the process.
func Hash(text string) uint64 { return maphash.String(seed, text) }
