package main

import (
	"fmt"
	"strings"
	"time"
)

// The picture: for each of these kinds, the number of calls admitted during the last real second,
// from shortly before the burst to shortly after the traffic's end.
var drawnKinds = []string{
	"fixed counter", "token bucket",
	"ring, 10 buckets", "weighted, two counters",
	ours, "sliding log",
}

// Sizes of a panel, in pixels.
const (
	panelWide  = 392
	panelHigh  = 150
	panelLeft  = 40 // of the first, and the room between two
	panelTop   = 112
	panelApart = 74
	full       = 220 // calls, at the top of a panel
)

const (
	pictureFrom = 700 * time.Millisecond
	pictureTo   = 2400 * time.Millisecond
	pictureStep = 5 * time.Millisecond
)

func drawn() string {
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 920 790" width="920" height="790" role="img" aria-labelledby="t d">
  <title id="t">A burst across an edge</title>
  <desc id="d">Six panels, one for each kind of window. Each shows how many calls were let in during the last second, over time, under a limit of 100 a second. The fixed counter, the token bucket, the ring of 10 buckets and the weighted window go up to twice the limit; the strict ring and the sliding log stay at it.</desc>
  <style>
    text { font-family: -apple-system, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif; font-size: 14px; fill: #1f2328 }
    .head { font-size: 18px; font-weight: 600 }
    .name { font-weight: 600 }
    .note { fill: #59636e; font-size: 13px }
    .end { text-anchor: end }
    .mid { text-anchor: middle }
    .over { fill: #b3261e; font-weight: 600 }
    .box { fill: #f6f8fa; stroke: #d1d9e0; stroke-width: 1.5 }
    .edge { stroke: #8c959f; stroke-width: 1; stroke-dasharray: 2 4 }
    .limit { stroke: #1f2328; stroke-width: 1.5; stroke-dasharray: 6 4 }
    .in { fill: #d7e8fb; stroke: #0b5cad; stroke-width: 1.5 }
    .beyond { fill: #e9827c }
    .card { fill: #ffffff; stroke: #d1d9e0 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 } .note { fill: #9198a1 } .over { fill: #f0625a }
      .card { fill: #0d1117; stroke: #3d444d } .box { fill: #151b23; stroke: #3d444d } .edge { stroke: #656c76 }
      .limit { stroke: #e6edf3 } .in { fill: #173a5e; stroke: #79b8ff } .beyond { fill: #b3423c }
    }
  </style>
  <rect class="card" x="1" y="1" width="918" height="788" rx="12" stroke-width="2"/>
  <text class="head" x="40" y="42">A burst across an edge: calls let in during the last second</text>
  <text class="note" x="40" y="66">Limit 100 a second. 100 calls come in the millisecond before a whole second, then ten each millisecond.</text>
`)
	for i, name := range drawnKinds {
		x := panelLeft + i%2*(panelWide+panelLeft+16)
		y := panelTop + i/2*(panelHigh+panelApart)
		panel(&b, name, x, y)
	}
	b.WriteString("  <text class=\"note\" x=\"40\" y=\"768\">Drawn by go run ./internal/bench/windows/compare -write</text>\n</svg>\n")
	return b.String()
}

func panel(b *strings.Builder, name string, x, y int) {
	times := play(named(name), edges(1)).admitted[0]
	across := func(at time.Duration) float64 {
		return float64(x) + panelWide*float64(at-pictureFrom)/float64(pictureTo-pictureFrom)
	}
	up := func(calls int) float64 { return float64(y) + panelHigh - panelHigh*float64(calls)/full }

	most := busiest(times)
	label := fmt.Sprintf(`<text class="note end" x="%d" y="%d">at most %d</text>`, x+panelWide, y-10, most)
	if most > limit {
		label = fmt.Sprintf(`<text class="over end" x="%d" y="%d">%d: %d too many</text>`, x+panelWide, y-10, most, most-limit)
	}
	fmt.Fprintf(b, "\n  <text class=\"name\" x=\"%d\" y=\"%d\">%s</text>\n  %s\n", x, y-10, name, label)
	fmt.Fprintf(b, "  <rect class=\"box\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", x, y, panelWide, panelHigh)

	var inside, beyond strings.Builder
	for at := pictureFrom; at <= pictureTo; at += pictureStep {
		n := lately(times, began+int64(at))
		fmt.Fprintf(&inside, "L%.1f %.1f", across(at), up(min(n, limit)))
		fmt.Fprintf(&beyond, "L%.1f %.1f", across(at), up(max(n, limit)))
	}
	shape := func(class, line string, base int) {
		fmt.Fprintf(b, "  <path class=\"%s\" d=\"M%.1f %.1f%sL%.1f %.1fZ\"/>\n",
			class, across(pictureFrom), up(base), line, across(pictureTo), up(base))
	}
	shape("in", inside.String(), 0)
	if most > limit {
		shape("beyond", beyond.String(), limit)
	}
	for s := 1; s <= 2; s++ {
		at := across(time.Duration(s) * time.Second)
		fmt.Fprintf(b, "  <path class=\"edge\" d=\"M%.1f %dv%d\"/><text class=\"note mid\" x=\"%.1f\" y=\"%d\">%d s</text>\n", at, y, panelHigh, at, y+panelHigh+18, s)
	}
	fmt.Fprintf(b, "  <path class=\"limit\" d=\"M%d %.1fh%d\"/>\n", x, up(limit), panelWide)
}

// lately counts the times in the second up to now.
func lately(times []int64, now int64) (n int) {
	for _, at := range times {
		if at <= now && now-at < int64(time.Second) {
			n++
		}
	}
	return n
}
