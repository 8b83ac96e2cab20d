package lint

import (
	"slices"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
)

// clusters checks the file's cluster settings, if members divide limits by their number.
func (l *linter) clusters() {
	local := func(r cluster.Rule) bool { return r.Shared() && r.OnFailure == cluster.Local }
	divides := slices.ContainsFunc(l.set.Flow, func(r flow.Rule) bool { return local(r.Cluster) }) ||
		slices.ContainsFunc(l.set.Hotspot, func(r hotspot.Rule) bool { return local(r.Cluster) }) ||
		slices.ContainsFunc(l.set.Isolation, func(r isolation.Rule) bool { return local(r.Cluster) })
	for i, c := range l.set.Cluster {
		if c.Members == 0 && divides {
			l.add("PN023", Notice, "cluster", i, "", "a process that has never reached the store assumes that it is the only one and grants the whole limit; add members")
		}
	}
}
