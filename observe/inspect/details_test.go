package inspect_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/engine"
)

// tenth is a family unknown to this package. It has one rule.
type tenth struct {
	engine.Family
	details core.Details
}

func (f tenth) Stats() []core.RuleStats {
	return []core.RuleStats{{Kind: core.KindAuthority, ID: "new", Refused: 3, Details: f.details}}
}

type notes struct {
	Note      string `json:"note"`
	resources []core.ResourceDetails
}

func (n notes) Lines(at time.Time) []string {
	return []string{"note " + n.Note, "at " + at.Format(time.TimeOnly)}
}

func (n notes) Resources() []core.ResourceDetails { return n.resources }

// badge is its report on a resource.
type badge struct {
	Rule, Text string
	resource   string
	urgency    int
}

func (b badge) About() string       { return b.resource }
func (b badge) Mark() (string, int) { return b.Text, b.urgency }

// A new family's details need no change here.
func TestDetailsOfAnyFamily(t *testing.T) {
	l := newLab(t, engine.Config{})
	require.NoError(t, l.Update(func(b *engine.SnapshotBuilder) error {
		return authority.Compile(b, []authority.Rule{{Resource: "orders", Origins: []string{"app"}}})
	}))
	require.NoError(t, l.Update(func(b *engine.SnapshotBuilder) error {
		b.Put(core.KindAuthority, tenth{b.Previous(core.KindAuthority), notes{"seen", []core.ResourceDetails{
			badge{"new", "calm", "orders", 0}, badge{"new", "loud", "orders", 2}, badge{"new", "louder", "items", 9},
			badge{"new", "busy", "orders", 1}, badge{"new", "", "orders", 7}, badge{"new", "calm", "sql", 0}, badge{"new", "nowhere", "none", 1},
		}}})
		return nil
	}))
	orders := l.enter(from("web", "app"), "orders")
	l.call(orders.Context(), 1, 0, "sql")
	orders.Exit()

	text := l.text()
	require.Regexp(t, `(?m)─ orders .* 0  loud$`, text)
	require.Regexp(t, `(?m)─ sql .* 0  calm$`, text)
	require.Contains(t, text, "\n\nauthority rule new: note seen\nauthority rule new: at 12:00:00\n")

	tree := l.tree()
	orderNode, ok := tree.Resource("orders")
	require.Len(t, found(t, orderNode, ok).Details, 4)
	data, err := json.Marshal(tree)
	require.NoError(t, err)
	require.Contains(t, string(data), `"mode":"enforce","asked":false,"refused":3,"shadowBlocked":0,"details":{"note":"seen"},"lines":["note seen","at 12:00:00"],"marks":[{"resource":"orders","text":"calm","urgency":0},`)
	require.Contains(t, string(data), `"details":[{"Rule":"new","Text":"calm"}]`)
}
