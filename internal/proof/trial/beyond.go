package trial

import (
	"testing"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
)

// Limit is a concurrency rule of any family.
type Limit struct {
	ID       string
	Resource string // a regular expression
	Units    int
	Mode     spec.Mode
}

// BeyondTheCap checks that calls in flight beyond the cap still count when the rule gets another
// ID, or is switched off for a while, enforced or in shadow mode; and that they don't affect another
// rule that then has the old ID. Beyond the cap, only the semaphore knows of the calls. compile
// makes rules of a family from limits.
func BeyondTheCap(t *testing.T, compile func(b *engine.SnapshotBuilder, limits []Limit) error) {
	for _, mode := range []spec.Mode{spec.Enforce, spec.Shadow} {
		rule := Limit{ID: "api", Resource: "/api/.*", Units: 2, Mode: mode}
		renamed, stranger, off := rule, rule, rule
		renamed.ID, stranger.Units, off.Mode = "renamed", 3, spec.Off
		other := Limit{ID: "other", Resource: "another", Units: 100}
		for name, loads := range map[string][][]Limit{
			"renamed":                  {{renamed}},
			"and back":                 {{renamed}, {rule}},
			"and another gets the ID":  {{renamed}, {renamed, stranger}},
			"off for a while":          {{off}, {rule}},
			"off for two loads":        {{off}, {off, other}, {rule}},
			"renamed while it was off": {{off}, {renamed}},
			"renamed while it was off, and another gets the ID": {{off}, {renamed}, {renamed, stranger}},
			"more, and off, and as it was":                      {{stranger}, {off}, {rule}},
		} {
			t.Run(mode.String()+"/"+name, func(t *testing.T) {
				e, _ := Engine(t, engine.Config{Caps: node.Caps{Resources: 1}})
				load := func(limits ...Limit) {
					if err := e.Update(func(b *engine.SnapshotBuilder) error { return compile(b, limits) }); err != nil {
						t.Fatal(err)
					}
				}
				enter := func(name string) bool {
					entry, err := e.Enter(t.Context(), name, nil)
					t.Cleanup(entry.Exit)
					return err == nil
				}
				load(rule)
				for _, name := range []string{"other", "/api/a", "/api/b"} {
					if !enter(name) {
						t.Fatalf("%s is refused", name)
					}
				}
				for _, limits := range loads {
					load(limits...)
				}
				if passed := enter("/api/c"); passed != (mode == spec.Shadow) {
					t.Errorf("a third one passed: %v", passed)
				}
				refused := []int64{1, 0} // by the rule, by the stranger
				for i, limit := range loads[len(loads)-1] {
					if f := Figures(t, e, limit.ID); f.Refused+f.ShadowBlocked != refused[i] {
						t.Errorf("%q refused %d and would have refused %d, want %d", limit.ID, f.Refused, f.ShadowBlocked, refused[i])
					}
				}
			})
		}
	}
}
