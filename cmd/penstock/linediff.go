package main

import (
	"fmt"
	"strings"
)

// writeLineDiff writes the change of a file as a unified diff.
func (c *command) writeLineDiff(name string, old, new []byte) error {
	var b strings.Builder
	b.WriteString(c.paint(c.out, bold, "--- "+name) + "\n" + c.paint(c.out, bold, "+++ "+name+" (formatted)") + "\n")
	for _, h := range hunks(splitLines(old), splitLines(new)) {
		b.WriteString(c.paint(c.out, blue, h.head()) + "\n")
		for _, l := range h.lines {
			color := map[byte]string{'-': red, '+': green}[l[0]]
			if color != "" {
				l = c.paint(c.out, color, l)
			}
			b.WriteString(l + "\n")
		}
	}
	_, err := c.out.Write([]byte(b.String()))
	return err
}

func splitLines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// hunk is a differing part of two texts, with the lines around it.
type hunk struct {
	old, new   int // the first line, from 1
	olds, news int // numbers of lines
	lines      []string
}

func (h hunk) head() string {
	return fmt.Sprintf("@@ -%d,%d +%d,%d @@", h.old, h.olds, h.new, h.news)
}

const around = 3 // context lines shown around a difference

// hunks compares two texts line by line. It skips the common beginning and end, and compares the
// remaining lines by the longest common subsequence, in time and space proportional to the product of
// their numbers. If a text has more than mostLines of them, it replaces them as a whole.
func hunks(old, new []string) []hunk {
	ops := compareLines(old, new)
	var all []hunk
	for i := 0; i < len(ops); {
		if ops[i].sign == ' ' {
			i++
			continue
		}
		from, to := max(0, i-around), i+1
		for j, same := i+1, 0; j < len(ops) && same <= 2*around; j++ {
			if same++; ops[j].sign != ' ' {
				to, same = j+1, 0
			}
		}
		to = min(len(ops), to+around)
		h := hunk{old: ops[from].old + 1, new: ops[from].new + 1}
		for _, op := range ops[from:to] {
			h.lines = append(h.lines, string(op.sign)+op.text)
			if op.sign != '+' {
				h.olds++
			}
			if op.sign != '-' {
				h.news++
			}
		}
		all = append(all, h)
		i = to
	}
	return all
}

// lineOp is a line that stays, is removed or is added, with the number of lines before it in both
// texts.
type lineOp struct {
	sign     byte
	text     string
	old, new int
}

const mostLines = 2000

func compareLines(old, new []string) (ops []lineOp) {
	head := 0
	for head < len(old) && head < len(new) && old[head] == new[head] {
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(new)-head && old[len(old)-1-tail] == new[len(new)-1-tail] {
		tail++
	}
	a, b := old[head:len(old)-tail], new[head:len(new)-tail]
	i, j := 0, 0
	add := func(sign byte, text string) {
		ops = append(ops, lineOp{sign, text, i, j})
		if sign != '+' {
			i++
		}
		if sign != '-' {
			j++
		}
	}
	for _, line := range old[:head] {
		add(' ', line)
	}
	if len(a) <= mostLines && len(b) <= mostLines {
		// common[x][y] is the length of the longest common subsequence of a[x:] and b[y:].
		common := make([][]int32, len(a)+1)
		for x := range common {
			common[x] = make([]int32, len(b)+1)
		}
		for x := len(a) - 1; x >= 0; x-- {
			for y := len(b) - 1; y >= 0; y-- {
				if a[x] == b[y] {
					common[x][y] = common[x+1][y+1] + 1
				} else {
					common[x][y] = max(common[x+1][y], common[x][y+1])
				}
			}
		}
		x, y := 0, 0
		for x < len(a) && y < len(b) {
			switch {
			case a[x] == b[y]:
				add(' ', a[x])
				x, y = x+1, y+1
			case common[x+1][y] >= common[x][y+1]:
				add('-', a[x])
				x++
			default:
				add('+', b[y])
				y++
			}
		}
		a, b = a[x:], b[y:]
	}
	for _, line := range a {
		add('-', line)
	}
	for _, line := range b {
		add('+', line)
	}
	for _, line := range old[len(old)-tail:] {
		add(' ', line)
	}
	return ops
}
