package main

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// The size of a drawing, and the position of its axes.
const (
	svgWidth, svgHeight           = 720, 280
	svgLeft, svgTop               = 56, 44
	svgRight, svgBottom           = 16, 36
	svgPassed, svgRefused         = "#2a9d8f", "#e76f51"
	svgText, svgLine              = "#6b7280", "#d1d5db"
	svgFont                       = "font-family=\"system-ui, sans-serif\" font-size=\"12\""
	svgInnerWidth                 = svgWidth - svgLeft - svgRight
	svgInnerHeight                = svgHeight - svgTop - svgBottom
	svgGridLines                  = 4
	svgMostLabels                 = 12
	svgGap                float64 = 0.15 // of a column's width
)

// drawing returns the outcome as a picture: a column for each second, with refused calls above
// passed ones.
func drawing(t traffic, rate string, out outcome) string {
	n := step(len(out.seconds))
	all := rows(out.seconds, n)
	most := 1
	for _, r := range all {
		most = max(most, r.passed+r.refused)
	}
	top := ceiling(most)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n",
		svgWidth, svgHeight, svgWidth, svgHeight)
	title := fmt.Sprintf("%s: %s for %s", t.resource, rateOf(rate), short(t.length))
	fmt.Fprintf(&b, "<title>%s</title>\n", escaped(title))
	text := func(x, y float64, anchor, color, s string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s" %s>%s</text>`+"\n",
			x, y, anchor, color, svgFont, escaped(s))
	}
	text(svgLeft, 18, "start", svgText, title)
	text(svgLeft, 34, "start", svgPassed, fmt.Sprintf("■ passed %d", out.passed))
	text(svgLeft+130, 34, "start", svgRefused, fmt.Sprintf("■ refused %d", out.refused))
	for i := range svgGridLines + 1 {
		y := svgTop + svgInnerHeight*(1-float64(i)/svgGridLines)
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s"/>`+"\n",
			svgLeft, y, svgWidth-svgRight, y, svgLine)
		text(svgLeft-6, y+4, "end", svgText, fmt.Sprint(top*i/svgGridLines))
	}
	width := float64(svgInnerWidth) / float64(max(1, len(all)))
	every := (len(all) + svgMostLabels - 1) / svgMostLabels
	for i, r := range all {
		x := svgLeft + width*float64(i)
		y := float64(svgTop + svgInnerHeight)
		for _, part := range []struct {
			n     int
			color string
		}{{r.passed, svgPassed}, {r.refused, svgRefused}} {
			h := svgInnerHeight * float64(part.n) / float64(top)
			if y -= h; part.n > 0 {
				fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n",
					x+width*svgGap/2, y, width*(1-svgGap), h, part.color)
			}
		}
		if i%every == 0 {
			text(x+width/2, svgHeight-svgBottom+16, "middle", svgText, fmt.Sprint(i*n+1))
		}
	}
	what := "second"
	if n > 1 {
		what = fmt.Sprintf("second, %d in a column", n)
	}
	text(svgLeft+svgInnerWidth/2, svgHeight-4, "middle", svgText, what)
	b.WriteString("</svg>\n")
	return b.String()
}

// ceiling returns the next higher number that divides the axis evenly.
func ceiling(n int) int {
	for unit := 1; ; unit *= 10 {
		for _, m := range []int{4, 8, 12, 16, 20, 24, 32} {
			if m*unit >= n {
				return m * unit
			}
		}
	}
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}
