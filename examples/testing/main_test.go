package main

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/rules"
)

// The rule file does what its authors mean: one table, read from top to bottom.
func TestRules(t *testing.T) {
	b, err := newBench(ruleFile)
	if err != nil {
		t.Fatal(err)
	}
	defer b.guard.Close()
	for i, s := range script {
		if got := b.call(s.at, s.resource); got != s.want {
			t.Errorf("step %d: %s after %v: %s, want %s", i, s.resource, s.at, got, s.want)
		}
	}
}

// The shortest test of a rule file: without a table, and without bench. docs/slots.md shows it.
func TestCheckout(t *testing.T) {
	set, err := rules.Load("rules.yaml")
	if err != nil {
		t.Fatal(err) // line, column, and the mistake
	}
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	guard, err := api.New(api.Config{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	if err := guard.LoadRules(set); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, true, false} { // three a second
		e, err := guard.Entry(t.Context(), "POST /checkout")
		if admitted := err == nil; admitted != want {
			t.Errorf("call %d: %v", i, err)
		}
		e.Exit()
	}
	clock.Advance(2 * time.Second)
	e, err := guard.Entry(t.Context(), "POST /checkout")
	if err != nil {
		t.Error(err)
	}
	e.Exit()
}

// A mistake in the file fails a test instead of surprising production.
func TestMistake(t *testing.T) {
	_, err := newBench([]byte("flow:\n  - resource: POST /checkout\n    treshold: 3\n"))
	if err == nil {
		t.Fatal("a misspelled key was accepted")
	}
	t.Log(err)
}

// The program's output is pinned.
func Example() {
	if err := run(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0s        POST /checkout  pass
	// 0s        POST /checkout  pass
	// 400ms     POST /checkout  pass
	// 999ms     POST /checkout  block
	// 1s        POST /checkout  block
	// 1.02s     POST /checkout  pass
	// 2s        POST /refund    pass
	// 2s        POST /refund    wait 500ms
	// 2s        POST /refund    block
	// 1h0m0s    GET /export     pass
	// 1h59m59s  GET /export     block
	// 2h1m12s   GET /export     pass
	// 3h0m0s    GET /no/rule    pass
}
