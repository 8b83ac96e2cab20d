package inspect

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/node"
)

// WriteSentinel writes the tree like alibaba/Sentinel's tree command, for its tools and its users:
//
//	EntranceNode: machine-root(t:1 pq:2.0 bq:0.0 tq:2.0 rt:3.5 prq:1.0 1mp:2 1mb:0 1mt:2)
//	-EntranceNode: http(t:1 pq:2.0 bq:0.0 tq:2.0 rt:3.5 prq:1.0 1mp:2 1mb:0 1mt:2)
//	--GET /orders(t:1 pq:2.0 bq:0.0 tq:2.0 rt:3.5 prq:1.0 1mp:2 1mb:0 1mt:2)
//
// t is calls in flight; pq, bq and tq are units admitted, refused and both per second; prq is units
// completed per second; rt is the average response time in milliseconds; 1mp, 1mb and 1mt are units
// admitted, refused and both in the last minute. The default context has Sentinel's name,
// [node.SentinelDefaultContext]. A legend follows, as in Sentinel. It returns the first error of w.
func (t Tree) WriteSentinel(w io.Writer) error { return t.view().writeSentinel(w) }

func (v view) writeSentinel(w io.Writer) error {
	out := bufio.NewWriter(w)
	var line []byte
	for n := range v.calls {
		line = append(line[:0], strings.Repeat("-", n.depth)...)
		if n.Kind != NodeCall {
			line = append(line, "EntranceNode: "...)
		}
		name := n.Name
		if n.Kind == NodeEntrance && name == node.DefaultContext {
			name = node.SentinelDefaultContext
		}
		line = shown.Append(line, name, sentinelWidth)
		line = strconv.AppendInt(append(line, "(t:"...), n.InFlight, 10)
		rates := n.Rates()
		line = shown.AppendJavaDouble(append(line, " pq:"...), rates.Pass)
		line = shown.AppendJavaDouble(append(line, " bq:"...), rates.Block)
		line = shown.AppendJavaDouble(append(line, " tq:"...), n.TotalRate())
		line = shown.AppendJavaDouble(append(line, " rt:"...), avgRTMillis(&n.Second))
		line = shown.AppendJavaDouble(append(line, " prq:"...), rates.Complete)
		line = strconv.AppendInt(append(line, " 1mp:"...), n.Minute.Pass, 10)
		line = strconv.AppendInt(append(line, " 1mb:"...), n.Minute.Block, 10)
		line = strconv.AppendInt(append(line, " 1mt:"...), n.Minute.Total(), 10)
		if _, err := out.Write(append(line, ")\n"...)); err != nil {
			return err
		}
	}
	out.WriteString("\r\n\r\nt:threadNum  pq:passQps  bq:blockQps  tq:totalQps  rt:averageRt  prq: passRequestQps 1mp:1m-pass 1mb:1m-block 1mt:1m-total\r\n")
	return out.Flush()
}

// sentinelWidth is the maximum width of a name: enough for every meaningful name.
const sentinelWidth = 256
