// Package chance seeds the random tests. The seed is 1, or the value of PENSTOCK_SEED, so that the
// same tree gives the same result; nightly runs set another. A failing test prints the seed, and
// the flag -seed repeats it:
//
//	go test ./flow -run '^TestThrottleTable$' -seed=7
package chance

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Env names the variable that changes the seed of a whole run.
const Env = "PENSTOCK_SEED"

// Seed is 1 unless PENSTOCK_SEED or the flag says otherwise.
var Seed = flag.Uint64("seed", seedOf(os.Getenv(Env)), "seed of the random tests")

// seedOf panics on text that is not a number: a run with another seed than the requested one proves
// nothing.
func seedOf(text string) uint64 {
	if text == "" {
		return 1
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%s=%q: not a whole number", Env, text))
	}
	return n
}

// Source returns a source of randomness whose seed a failing test prints.
func Source(t testing.TB) *rand.Rand {
	t.Helper()
	return Stream(t, 0)
}

// Stream is like Source, but gives a test several streams: one per number, all from one seed.
func Stream(t testing.TB, number uint64) *rand.Rand {
	t.Helper()
	t.Logf("-seed=%d", *Seed)
	return rand.New(rand.NewPCG(*Seed, number))
}
