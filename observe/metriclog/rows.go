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

// Rows returns a Guard's counts of the last minute, without reading files: complete seconds, starting
// with the one that contains from, up to but not including to, and never the current second. Seconds
// without counts have no rows. The inbound calls of all resources together have rows under
// [node.InboundName]; a resource of that name gets an underscore as prefix. Rows are sorted by time,
// then by name. Times are in UTC.
func Rows(g *api.Guard, from, to time.Time) []Row {
	now := g.Now()
	if running := second(now); to.After(running) {
		to = running
	}
	return rowsUntil(g, now, from, to)
}

// rowsUntil is like Rows, but includes the current second if to is later.
func rowsUntil(g *api.Guard, now int64, from, to time.Time) []Row {
	view, err := stat.NewView(g.Nodes().Layout(), time.Minute, 60)
	if err != nil {
		panic(err) // the last minute is kept in every layout
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
			if name == node.InboundName { // reserved for all inbound calls
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
