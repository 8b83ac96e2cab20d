package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/cluster"
	penstockredis "github.com/penstock-go/penstock/cluster/redis"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/flow"
)

// jobVariable is the environment variable with the job of a process.
const jobVariable = "PENSTOCK_EXAMPLE_CLUSTER"

// job holds the parameters of a process.
type job struct {
	Store string // the URL of a Redis, or the address of another process; "" means this process
}

// member is a process of the cluster: it makes calls until in ends. It writes the location of the
// store and then, each second, the number of admitted calls.
func member(text string, in io.Reader, out io.Writer) error {
	var job job
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in) // ends with the process that started this one
		stop()
	}()

	store, where, err := open(job.Store)
	if err != nil {
		return err
	}
	if closer, ok := store.(io.Closer); ok {
		defer closer.Close()
	}

	guard, err := api.New(api.Config{
		Cluster: cluster.Config{Store: store, Namespace: "example", Members: members, Logger: slog.Default()},
		Logger:  slog.New(slog.DiscardHandler), // it would log each second with refused calls
	})
	if err != nil {
		return err
	}
	defer guard.Close() // returns unspent units and leaves the cluster
	if err := guard.LoadRules(api.RuleSet{Flow: []flow.Rule{{
		ID: "orders", Resource: "orders", Threshold: limit, // of all processes together
		Cluster: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Local},
	}}}); err != nil {
		return err
	}

	fmt.Fprintln(out, where)
	calls(ctx, out, func() bool {
		entry, err := guard.Entry(ctx, "orders")
		defer entry.Exit()
		return err == nil // the process's own lease decides nearly all calls
	})
	return nil
}

// open opens the store, and returns its address for the other processes.
func open(where string) (store.Store, string, error) {
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

// calls makes calls, evenly spaced.
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
