package metriclog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// Rows reads what a Guard still knows of the last minute, without any file: the whole seconds
// from the one that from falls in up to to, which is left out, and so is the second that is
// still running. The inbound calls of all resources have rows of their own, under
// [node.InboundName]; a resource of that name is shown with an underscore before it. Seconds in which
// nothing happened have none. The oldest come first,
// then they are sorted by name. Times are in UTC.
func Rows(g *api.Guard, from, to time.Time) []Row {
	now := g.Now()
	if running := second(now); to.After(running) {
		to = running
	}
	return rowsUntil(g, now, from, to)
}

// rowsUntil is Rows with the second that is running, if to is later.
func rowsUntil(g *api.Guard, now int64, from, to time.Time) []Row {
	view, err := stat.NewView(g.Nodes().Layout(), time.Minute, 60)
	if err != nil {
		panic(err) // the last minute is kept whatever the layout is
	}
	keep := func(start int64) bool {
		at := start / int64(time.Second)
		return at >= from.Unix() && at*int64(time.Second) == start && time.Unix(0, start).Before(to)
	}
	var rows []Row
	var buckets []stat.Bucket[stat.Counts]
	read := func(name string, n *node.StatisticNode) {
		buckets = view.AppendBuckets(buckets[:0], &n.Counters, now, keep)
		for i := range buckets {
			c := &buckets[i].Value
			if *c == (stat.Counts{}) {
				continue
			}
			rows = append(rows, Row{
				At: time.Unix(0, buckets[i].Start).UTC(), Resource: name,
				Pass: c.Pass, Block: c.Block, Complete: c.Complete, Exception: c.Exception,
				AvgRT: c.AvgRT(), Occupied: c.Occupied, InFlight: n.InFlight(),
			})
		}
	}
	g.EachResource(func(r *node.ClusterNode) {
		if r.Entered() {
			name := r.Name()
			if name == node.InboundName { // whose rows mean all inbound calls
				name = "_" + name
			}
			read(name, &r.StatisticNode)
		}
	})
	read(node.InboundName, &g.Nodes().Inbound().StatisticNode)
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Resource, b.Resource))
	})
	return rows
}
