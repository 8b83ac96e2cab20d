package inspect

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// WriteSentinel writes the tree as alibaba/Sentinel's tree command does, for its
// tools and for eyes that are used to it:
//
//	EntranceNode: machine-root(t:1 pq:2.0 bq:0.0 tq:2.0 rt:3.5 prq:1.0 1mp:2 1mb:0 1mt:2)
//	-EntranceNode: http(t:1 pq:2.0 bq:0.0 tq:2.0 rt:3.5 prq:1.0 1mp:2 1mb:0 1mt:2)
//	--GET /orders(t:1 pq:2.0 bq:0.0 tq:2.0 rt:3.5 prq:1.0 1mp:2 1mb:0 1mt:2)
//
// t is calls in flight; pq, bq and tq are units admitted, refused and both per
// second, and prq those completed; rt is the average response time in milliseconds;
// 1mp, 1mb and 1mt are units admitted, refused and both in the last minute. A legend
// follows, as there. It returns the first error of w.
func (t Tree) WriteSentinel(w io.Writer) error {
	var out bytes.Buffer
	for depth, n := range t.Walk() {
		out.WriteString(strings.Repeat("-", depth))
		if n.Kind != KindCall {
			out.WriteString("EntranceNode: ")
		}
		rates := n.Rates()
		fmt.Fprintf(&out, "%s(t:%d pq:%s bq:%s tq:%s rt:%s prq:%s 1mp:%d 1mb:%d 1mt:%d)\n",
			shown(n.Name, sentinelWidth), n.InFlight,
			javaDouble(rates.Pass), javaDouble(rates.Block), javaDouble(n.TotalRate()),
			javaDouble(avgRTMillis(&n.Second)), javaDouble(rates.Complete),
			n.Minute.Pass, n.Minute.Block, n.Minute.Total())
	}
	out.WriteString("\r\n\r\nt:threadNum  pq:passQps  bq:blockQps  tq:totalQps  rt:averageRt  prq: passRequestQps 1mp:1m-pass 1mb:1m-block 1mt:1m-total\r\n")
	_, err := w.Write(out.Bytes())
	return err
}

// sentinelWidth is what a name is cut at here: far enough out for every name that
// means something.
const sentinelWidth = 256

// javaDouble formats a number as Java does: with a decimal point always.
func javaDouble(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
