package rules_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func ExampleWatch() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rules.yaml")
	set := rules.Set{Flow: []flow.Rule{{Resource: "GET /orders", Threshold: 100}}}
	text, _ := set.YAML()
	_ = os.WriteFile(path, text, 0o600)

	w, err := rules.Watch(context.Background(), path,
		func(set rules.Set) error { // in a program, api.LoadRules
			fmt.Println("apply", set.Len(), "rule")
			return nil
		},
		rules.WatchConfig{
			OnReload: func(r rules.Reload) { fmt.Println(strings.Join(r.Change.Lines(), "\n")) },
			Logger:   slog.New(slog.DiscardHandler),
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	fmt.Println(w.Status().OK)
	// Output:
	// apply 1 rule
	// + flow "flow:GET /orders"
	// true
}

func ExampleParse() {
	_, err := rules.Parse("rules.yaml", []byte(`
flow:
  - resource: GET /orders
    treshold: 100
    interval: 60
`))
	fmt.Println(err)
	// Output:
	// rules.yaml:4:5: flow[0].treshold: unknown field (did you mean "threshold"?)
	// rules.yaml:5:15: flow[0].interval: must be a duration with its unit, as in 60ms or 60s
}

// A set is written in the form of a rule file.
func ExampleSet_YAML() {
	set := rules.Set{Flow: []flow.Rule{
		{ID: "mail", Resource: "send mail", Threshold: 10, Behavior: flow.Throttle, MaxWait: 2 * time.Second},
	}}
	file, err := set.YAML()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(file))
	// Output:
	// flow:
	//   - id: mail
	//     resource: send mail
	//     threshold: 10
	//     behavior: throttle
	//     maxWait: 2s
}

func ExampleDiff() {
	before := rules.Set{Flow: []flow.Rule{{Resource: "orders", Threshold: 100}, {Resource: "items", Threshold: 5}}}
	after := rules.Set{Flow: []flow.Rule{{Resource: "orders", Threshold: 200}}}
	change := rules.Diff(before, after)
	fmt.Println(change)
	fmt.Println(strings.Join(change.Lines(), "\n"))
	// Output:
	// +0 ~1 -1
	// ~ flow flow:orders: threshold 100 -> 200
	// - flow flow:items
}
