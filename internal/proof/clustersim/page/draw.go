package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/proof/clustersim"
)

// Sizes of the picture, in pixels.
const (
	left, top  = 60, 100
	wide, high = 820, 300
)

// drawn draws the story: members stacked under the limit, and a band while the store is
// unreachable. Each step shows the second before it.
func drawn(s clustersim.Story) string {
	steps := len(s.Admitted[0])
	second := int(time.Second / s.Step)
	most := float64(s.Limit) * 1.25
	x := func(step int) float64 { return left + float64(step)*wide/float64(steps) }
	y := func(units int64) float64 { return top + high - float64(units)/most*high }

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 920 470" width="920" height="470" role="img" aria-labelledby="t d">
  <title id="t">Four members under one limit</title>
  <desc id="d">What four members have admitted in the last second, stacked, under a limit of %d a second. Traffic moves to the first and back, the last one is killed and comes back, and the store is away for three seconds: the sum stays at the limit, and each has a quarter of it while the store is away.</desc>
  <style>
    text { font-family: -apple-system, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif; font-size: 14px; fill: #1f2328 }
    .head { font-size: 18px; font-weight: 600 }
    .note { fill: #59636e; font-size: 13px }
    .end { text-anchor: end }
    .mid { text-anchor: middle }
    .card { fill: #ffffff; stroke: #d1d9e0 }
    .box { fill: #f6f8fa; stroke: #d1d9e0 }
    .band { fill: #b3261e; opacity: 0.12 }
    .limit { stroke: #1f2328; stroke-width: 1.5; stroke-dasharray: 6 4 }
    .m0 { fill: #0b5cad } .m1 { fill: #4a90d9 } .m2 { fill: #8fbcec } .m3 { fill: #c9dff7 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 } .note { fill: #9198a1 }
      .card { fill: #0d1117; stroke: #3d444d } .box { fill: #151b23; stroke: #3d444d }
      .limit { stroke: #e6edf3 } .band { fill: #ff8a80; opacity: 0.18 }
    }
  </style>
  <rect class="card" x="1" y="1" width="918" height="468" rx="12" stroke-width="2"/>
  <text class="head" x="40" y="42">Four members under one limit: calls let in during the last second</text>
  <text class="note" x="40" y="66">Limit %d a second, half as much again is offered. Simulated: make cluster-sim.</text>
  <rect class="box" x="%d" y="%d" width="%d" height="%d"/>
`, s.Limit, s.Limit, left, top, wide, high)

	below := make([]int64, steps)
	for i, units := range s.Admitted {
		var up, down strings.Builder
		sum := int64(0)
		for step := range steps {
			sum += units[step]
			if step >= second {
				sum -= units[step-second]
			}
			if step%2 == 1 {
				continue
			}
			fmt.Fprintf(&up, "L%.1f %.1f", x(step), y(below[step]+sum))
		}
		sum = 0
		points := make([]int64, steps)
		for step := range steps {
			sum += units[step]
			if step >= second {
				sum -= units[step-second]
			}
			points[step] = sum
		}
		for step := steps - 2; step >= 0; step -= 2 {
			fmt.Fprintf(&down, "L%.1f %.1f", x(step), y(below[step]))
		}
		for step := range below {
			below[step] += points[step]
		}
		fmt.Fprintf(&b, "  <path class=\"m%d\" d=\"M%s%sZ\"/>\n", i, up.String()[1:], down.String())
	}
	fmt.Fprintf(&b, `  <rect class="band" x="%.1f" y="%d" width="%.1f" height="%d"/>
  <path class="limit" d="M%d %.1fh%d"/>
  <text class="note end" x="%d" y="%.1f">%d</text>
`, x(s.Away), top, x(s.Back)-x(s.Away), high, left, y(s.Limit), wide, left-8, y(s.Limit)+5, s.Limit)
	for _, note := range []struct {
		from, to int
		text     string
	}{{30, 60, "traffic moves"}, {s.Gone, s.Again, "one is killed"}, {s.Away, s.Back, "the store is away"}} {
		fmt.Fprintf(&b, "  <text class=\"note mid\" x=\"%.1f\" y=\"%d\">%s</text>\n", (x(note.from)+x(note.to))/2, top+18, note.text)
	}
	for at := 0; at*second < steps; at += 2 {
		fmt.Fprintf(&b, "  <text class=\"note mid\" x=\"%.1f\" y=\"%d\">%d s</text>\n", x(at*second), top+high+22, at)
	}
	for i := range s.Admitted {
		fmt.Fprintf(&b, "  <rect class=\"m%d\" x=\"%d\" y=\"%d\" width=\"14\" height=\"14\"/><text class=\"note\" x=\"%d\" y=\"%d\">member %d</text>\n",
			i, left+i*110, top+high+38, left+20+i*110, top+high+50, i+1)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
