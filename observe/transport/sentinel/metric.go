package sentinel

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/stat"
)

// The names in the metrics that don't belong to a resource.
const (
	inboundTotal = "__total_inbound_traffic__"
	systemLoad   = "__system_load__"
	cpuUsage     = "__cpu_usage__"
)

const (
	usualLines = 6_000
	maxLines   = 12_000
)

// second is a node's counts in one second.
type second struct {
	name     string
	start    int64 // ns
	counts   stat.Counts
	inFlight int64 // at its end
}

// metric returns a line for each resource and second with counts, from startTime to endTime
// inclusive: only of the last minute, and only of seconds that have ended.
func (h *handler) metric(ask question) (reply, error) {
	if strings.TrimSpace(ask.Get("startTime")) == "" {
		return text(""), nil
	}
	from, err := wholeMillis(ask, "startTime", 0)
	if err != nil {
		return reply{}, err
	}
	to, err := wholeMillis(ask, "endTime", 1<<50)
	if err != nil {
		return reply{}, err
	}
	usual := int64(maxLines)
	if ask.Get("endTime") == "" {
		usual = usualLines
	}
	lines, err := wholeMillis(ask, "maxLines", usual)
	if err != nil {
		return reply{}, err
	}
	most := int(min(maxLines, max(0, lines)))

	now := h.guard.Now()
	identity := ask.Get("identity")
	var all []second
	var history []stat.Bucket[stat.Counts]
	collect := func(name string, n *node.StatisticNode) {
		if identity != "" && name != identity {
			return
		}
		history = n.AppendHistory(history[:0], now)
		inFlight := n.InFlight()
		for _, b := range slices.Backward(history) { // backwards from the calls in flight now
			over := now-b.Start >= int64(time.Second)
			if at := b.Start / int64(time.Millisecond); over && at >= from/1000*1000 && at <= to && counted(&b.Value) {
				all = append(all, second{name, b.Start, b.Value, inFlight})
			}
			inFlight -= b.Value.Entered - b.Value.Exited
		}
	}
	var resources []*node.ClusterNode
	h.guard.EachResource(func(r *node.ClusterNode) {
		if r.Entered() {
			resources = append(resources, r)
		}
	})
	for _, r := range resources {
		name := r.Name()
		if name == inboundTotal || name == systemLoad || name == cpuUsage { // these lines mean something else
			name = "_" + name
		}
		collect(name, &r.StatisticNode)
	}
	collect(inboundTotal, &h.guard.Nodes().Inbound().StatisticNode)
	slices.SortFunc(all, func(a, b second) int {
		return cmp.Or(cmp.Compare(a.start, b.start), strings.Compare(a.name, b.name))
	})

	var out bytes.Buffer
	for _, s := range all[:min(most, len(all))] {
		c := &s.counts
		thin(&out, s.start, s.name, c.Pass, c.Block, c.Complete, c.Exception, c.AvgRT().Milliseconds(), c.Occupied, max(0, s.inFlight))
	}
	if identity == "" {
		begun := now - now%int64(time.Second)
		machine := h.guard.Machine()
		for _, r := range []struct {
			name  string
			value float64
		}{{systemLoad, machine.Load}, {cpuUsage, machine.CPU}} {
			if r.value > 0 { // only while a rule uses it
				thin(&out, begun, r.name, int64(r.value*10_000), 0, 0, 0, 0, 0, 0)
			}
		}
	}
	return text(out.String()), nil
}

func counted(c *stat.Counts) bool {
	return c.Pass > 0 || c.Block > 0 || c.Complete > 0 || c.Exception > 0 || c.Occupied > 0
}

var lineName = strings.NewReplacer("|", "_", "\n", "_", "\r", "_", "\u2028", "_", "\u2029", "_", "\x85", "_", "\x00", "_")

// thin writes a line of metrics: the second in ms, the name, pass, block, success, exception, the
// mean response time in ms, occupied, calls in flight, and the resource's type, unknown here.
func thin(out *bytes.Buffer, start int64, name string, figures ...int64) {
	line := strconv.AppendInt(out.AvailableBuffer(), start/int64(time.Millisecond), 10)
	line = append(append(line, '|'), lineName.Replace(name)...)
	for _, v := range figures {
		line = strconv.AppendInt(append(line, '|'), v, 10)
	}
	out.Write(append(line, "|0\n"...))
}

func wholeMillis(ask question, name string, usual int64) (int64, error) {
	value := strings.TrimSpace(ask.Get(name))
	if value == "" {
		return usual, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, badRequest("%s must be a whole number", name)
	}
	return n, nil
}
