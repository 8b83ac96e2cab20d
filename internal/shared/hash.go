//go:build !sim

package shared

import "hash/maphash"

var seed = maphash.MakeSeed()

// Hash is a hash of a text that nobody outside the process can foresee.
func Hash(text string) uint64 { return maphash.String(seed, text) }
