package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/penstock-go/penstock/cluster"
	penstockredis "github.com/penstock-go/penstock/cluster/redis"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/stat"
)

// jobVariable is the variable of the environment that tells a process what to do.
const jobVariable = "PENSTOCK_EXAMPLE_CLUSTER"

// job is what a process is told to do.
type job struct {
	Store string // the URL of a Redis, or the address of another process; "" means that this process keeps it
}

// member is a process of the cluster: it makes calls until in ends, and writes where the store
// is, and then each second how many calls were admitted.
func member(text string, in io.Reader, out io.Writer) error {
	var job job
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in) // it ends with the process that started this one
		stop()
	}()

	store, where, err := open(job.Store)
	if err != nil {
		return err
	}
	if closer, ok := store.(io.Closer); ok {
		defer closer.Close()
	}

	clock := clocks.NewSystem()
	m, err := cluster.Join(cluster.Config{Store: store, Clock: clock, Namespace: "example", Members: members, Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer m.Close()
	window, err := m.Window("orders", cluster.WindowConfig{
		Shape:     stat.Shape{Interval: time.Second, Buckets: 10, Strict: true},
		Threshold: limit,
		Rule:      cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Local},
	})
	if err != nil {
		return err
	}

	fmt.Fprintln(out, where)
	calls(ctx, out, func() bool { return admit(ctx, m, window, clock.Now()) })
	return nil
}

// admit reports whether a call may be made. Nearly all are decided by the process's own lease.
func admit(ctx context.Context, m *cluster.Member, window *cluster.Window, now int64) bool {
	if _, ok := window.TryAdd(0, now, 1); ok {
		return true
	}
	if window.Ask(now, 1) != cluster.Lacks {
		return false
	}
	need := []cluster.Need{{Limit: window, Units: 1}} // this one waits briefly for the store
	return m.Fetch(ctx, window.Timeout(), need) == nil && need[0].Got
}

// open opens the store, and says where the others find it.
func open(where string) (cluster.Store, string, error) {
	switch {
	case where == "":
		return keep()
	case strings.Contains(where, "://"):
		store, err := penstockredis.Open(where)
		return store, where, err
	default:
		return dial(where), where, nil
	}
}

// calls makes them, evenly spread.
func calls(ctx context.Context, out io.Writer, admit func() bool) {
	begin, made, admitted := time.Now(), 0, 0
	second := begin.Unix()
	for ctx.Err() == nil {
		now := time.Now()
		if now.Unix() != second {
			fmt.Fprintln(out, second, admitted)
			second, admitted = now.Unix(), 0
		}
		if due := int(now.Sub(begin) * offered / time.Second); made >= due {
			_ = sleep(ctx, time.Millisecond)
			continue
		}
		made++
		if admit() {
			admitted++
		}
	}
}
