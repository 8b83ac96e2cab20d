package penstockredis_test

import (
	"testing"
	"time"

	penstockredis "github.com/penstock-go/penstock/cluster/redis"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/cluster/storetest"
)

// The store meets the contract on the server's own clock.
func TestConformance(t *testing.T) {
	client := patient(t, start(t))
	storetest.Run(t, storetest.Config{
		New: func(testing.TB) store.Store { return penstockredis.Patient(client) },
	})
}

// It also does so on a clock that moves, even backwards.
func TestConformanceOfMovedClocks(t *testing.T) {
	client := patient(t, start(t))
	var advance func(time.Duration)
	storetest.Run(t, storetest.Config{
		New: func(t testing.TB) (store store.Store) {
			store, advance = movable(t, client)
			return store
		},
		Advance: func(d time.Duration) { advance(d) },
	})
}
