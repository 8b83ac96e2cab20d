package core_test

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random tests")

// random returns a source of randomness whose seed a failing test prints.
func random(t testing.TB) *rand.Rand {
	t.Helper()
	t.Logf("-seed=%d", *seed)
	return rand.New(rand.NewPCG(*seed, 0))
}
