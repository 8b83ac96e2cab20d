package main

import (
	"fmt"
	"strings"
	"time"
)

// Sizes of every picture, in pixels: narrow enough for its text to be readable on a phone.
const (
	width = 720
	edge  = 56 // left of the panels
	inner = width - edge - 32
)

// style has each color twice, for light and for dark pages. A picture brings its own background,
// since the page's may differ from the reader's system setting.
const style = `  <style>
    text { font-family: -apple-system, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif; font-size: 15px; fill: #1f2328 }
    .head { font-size: 18px; font-weight: 600 }
    .note { fill: #59636e; font-size: 14px }
    .end { text-anchor: end }
    .mid { text-anchor: middle }
    .card { fill: #ffffff; stroke: #d1d9e0; stroke-width: 2 }
    .box { fill: #f6f8fa; stroke: #d1d9e0 }
    .grid { stroke: #d1d9e0; stroke-dasharray: 2 4 }
    .theory { fill: none; stroke: #1f2328; stroke-width: 2; stroke-dasharray: 6 4 }
    .good { fill: #4a90d9 }
    .first { fill: #8250df }
    .bad { fill: #c9362e }
    .kept { fill: #c3cbd4 }
    .left { fill: none; stroke: #0b5cad; stroke-width: 2 }
    .way { stroke: #4a90d9; stroke-width: 1.5 }
    .wayfirst { stroke: #8250df; stroke-width: 1.5 }
    .cross { stroke: #c9362e; stroke-width: 2 }
    .closed { fill: #b7dfc1 } .open { fill: #f2b8b5 } .halfOpen { fill: #f6e1a5 } .recovering { fill: #cfe3f8 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 } .note { fill: #9198a1 }
      .card { fill: #0d1117; stroke: #3d444d } .box { fill: #151b23; stroke: #3d444d } .grid { stroke: #3d444d }
      .theory { stroke: #e6edf3 } .kept { fill: #525c68 } .left { stroke: #79b8ff }
      .first { fill: #b392f0 } .wayfirst { stroke: #b392f0 } .bad { fill: #f0625a } .cross { stroke: #f0625a }
      .closed { fill: #1f6f3a } .open { fill: #8e2a25 } .halfOpen { fill: #7a5c00 } .recovering { fill: #1c4f82 }
    }
  </style>
`

// page is a picture in progress.
type page struct{ strings.Builder }

// begun returns a page with its title, a description for screen readers, and a line of explanation.
func begun(high int, title, description, note string) *page {
	b := new(page)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t d">
  <title id="t">%s</title>
  <desc id="d">%s</desc>
`, width, high, width, high, title, description)
	b.WriteString(style)
	fmt.Fprintf(b, "  <rect class=\"card\" x=\"1\" y=\"1\" width=\"%d\" height=\"%d\" rx=\"12\"/>\n", width-2, high-2)
	b.text("head", 32, 38, title)
	b.text("note", 32, 62, note)
	return b
}

// ended returns the whole picture.
func (b *page) ended() string { return b.String() + "</svg>\n" }

func (b *page) text(class string, x, y float64, text string) {
	fmt.Fprintf(b, "  <text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", class, x, y, text)
}

func (b *page) rect(class string, x, y, wide, high float64) {
	fmt.Fprintf(b, "  <rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", class, x, y, wide, high)
}

func (b *page) segment(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(b, "  <path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", class, x1, y1, x2, y2)
}

func (b *page) dot(class string, x, y float64) {
	fmt.Fprintf(b, "  <circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>\n", class, x, y)
}

// legend adds a row that explains colors, below the explanation: class, text, class, text.
func (b *page) legend(pairs ...string) {
	x, y := float64(edge), 90.0
	for i := 0; i < len(pairs); i += 2 {
		b.rect(pairs[i], x, y-11, 13, 13)
		b.text("note", x+19, y, pairs[i+1])
		x += 19 + 7.2*float64(len(pairs[i+1])) + 20
	}
}

// panel is an area with time from left to right, and values from 0 up to most.
type panel struct {
	top, high float64
	from, to  time.Duration
	most      float64
}

func (p panel) x(at time.Duration) float64 {
	return edge + inner*float64(at-p.from)/float64(p.to-p.from)
}
func (p panel) y(v float64) float64 { return p.top + p.high*(1-v/p.most) }

// frame draws the area, with horizontal lines at the given values and vertical lines at the given
// interval.
func (p panel) frame(b *page, figures []float64, every time.Duration) {
	b.rect("box", edge, p.top, inner, p.high)
	for _, v := range figures {
		b.segment("grid", edge, p.y(v), edge+inner, p.y(v))
		b.text("note end", edge-8, p.y(v)+5, fmt.Sprint(v))
	}
	for at := p.from; at <= p.to; at += every {
		b.text("note mid", p.x(at), p.top+p.high+20, at.String())
	}
}

// curve draws the values of f at each step.
func (p panel) curve(b *page, class string, step time.Duration, f func(time.Duration) float64) {
	var path strings.Builder
	for at := p.from; at <= p.to; at += step {
		fmt.Fprintf(&path, "L%.1f %.1f", p.x(at), p.y(f(at)))
	}
	fmt.Fprintf(b, "  <path class=\"%s\" d=\"M%s\"/>\n", class, path.String()[1:])
}

// bar draws v as a bar that starts at below, or at the bottom if below is 0.
func (p panel) bar(b *page, class string, from, to time.Duration, below, v float64) {
	if v > 0 {
		b.rect(class, p.x(from)+1, p.y(below+v), p.x(to)-p.x(from)-2, p.y(below)-p.y(below+v))
	}
}
