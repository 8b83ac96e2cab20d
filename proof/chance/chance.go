// Package chance is what random tests draw from. A failing test prints the seed, and
// the flag -seed runs it again:
//
//	go test ./flow -run '^TestThrottleTable$' -seed=7
package chance

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

// Seed is another one in each run, unless the flag says which.
var Seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random tests")

// Source returns a source of randomness whose seed a failing test prints.
func Source(t testing.TB) *rand.Rand {
	t.Helper()
	return Stream(t, 0)
}

// Stream is Source for a test with several: of one seed, each number has its own.
func Stream(t testing.TB, number uint64) *rand.Rand {
	t.Helper()
	t.Logf("-seed=%d", *Seed)
	return rand.New(rand.NewPCG(*Seed, number))
}
