// Memory shows a rule whose threshold falls as the process uses more memory: a cache grows until
// most of the limit is in use, and is then dropped. Every other second 120 exports are requested.
//
//	go run ./examples/memory
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/flow"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	container := &container{limit: 2 << 30}
	guard, err := api.New(api.Config{Clock: clock, Host: container, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Flow: []flow.Rule{{
		Resource:        "POST /export",
		Threshold:       100,             // per second, while
		LowMemory:       flow.Share(0.5), // at most half of the limit is used
		HighMemory:      flow.Share(0.9),
		MemoryThreshold: 10, // at nine tenths or more
	}}})
	if err != nil {
		return err
	}
	for i, mib := range []int64{512, 1024, 1280, 1536, 1792, 1990, 1990, 600, 600} {
		container.used = mib << 20
		clock.Advance(2 * time.Second) // also samples the memory
		passed := 0
		for range 120 {
			e, err := guard.Entry(context.Background(), "POST /export")
			if err == nil {
				passed++
			}
			e.Exit()
		}
		fmt.Fprintf(w, "second %2d: %4d MiB in use, %3d of 120 exports\n", 2*(i+1), mib, passed)
	}
	return nil
}

// container is the container that the process runs in, with its limit. By default the guard uses
// the machine and the actual control group.
type container struct{ used, limit int64 }

// Memory returns the memory in use, and the limit.
func (c *container) Memory(int64) (host.Memory, error) {
	return host.Memory{Used: c.used, Limit: c.limit}, nil
}

// Load is unused: no rule needs it.
func (c *container) Load(int64) (float64, error) { return 0, errUnread }

// CPU is unused too.
func (c *container) CPU(int64) (float64, error) { return 0, errUnread }

var errUnread = errors.New("no rule looks at it")
