package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// sortKey is the order of the rows.
type sortKey int

const (
	byTraffic sortKey = iota
	byName
	byBlocks
	byRT
	byFlight
	sortKeys
)

func (k sortKey) String() string {
	return [...]string{"traffic", "name", "blocks", "rt", "in flight"}[k]
}

// row is a line of the screen: a resource, or a node of the tree.
type row struct {
	key      string // identifies it while other rows appear and disappear
	name     string // of the resource, "" for another node
	label    string
	guide    string // tree lines
	figures  resourceJSON
	overflow bool
}

func (m top) indexOf(rows []row) int {
	for i := range rows {
		if rows[i].key == m.chosen {
			return i
		}
	}
	return 0
}

func (m top) chosenRow() (row, bool) {
	rows := m.rows()
	if len(rows) == 0 {
		return row{}, false
	}
	return rows[m.indexOf(rows)], true
}

// rowsHigh returns the number of rows that fit.
func (m top) rowsHigh() int { return max(1, m.height-4) }

// rows returns the rows of the view.
func (m top) rows() []row {
	if m.list || m.frame.tree == nil {
		return m.listRows()
	}
	byName := make(map[string]*resourceJSON, len(m.frame.resources.Resources))
	for i := range m.frame.resources.Resources {
		r := &m.frame.resources.Resources[i]
		byName[r.Name] = r
	}
	return m.treeRows(nil, &m.frame.tree.Root, "", "", "", byName)
}

func (m top) listRows() (rows []row) {
	for _, r := range m.frame.resources.Resources {
		if m.found(r.Name) {
			rows = append(rows, row{key: r.Name, name: r.Name, label: r.Name, figures: r, overflow: r.Overflow})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return m.compare(&a.figures, &b.figures) })
	return rows
}

func (m top) found(name string) bool {
	return m.find == "" || strings.Contains(strings.ToLower(name), strings.ToLower(m.find))
}

// compare compares by the sort key: descending, but names ascending.
func (m top) compare(a, b *resourceJSON) int {
	c := 0
	switch m.sort {
	case byTraffic:
		c = cmp.Compare(b.Minute.Pass+b.Minute.Block, a.Minute.Pass+a.Minute.Block)
	case byBlocks:
		c = cmp.Compare(b.Minute.Block, a.Minute.Block)
	case byRT:
		c = cmp.Compare(b.Minute.AvgRTMs, a.Minute.AvgRTMs)
	case byFlight:
		c = cmp.Compare(b.InFlight, a.InFlight)
	}
	if c = cmp.Or(c, strings.Compare(a.Name, b.Name)); m.reverse {
		return -c
	}
	return c
}

// treeRows appends a node and its descendants. During a search, only matching nodes and their
// ancestors are shown.
func (m top) treeRows(rows []row, n *nodeJSON, above, guide, below string, resources map[string]*resourceJSON) []row {
	r := row{key: fmt.Sprintf("%s\x00%s %v", above, n.Name, n.Overflow), label: n.Name, guide: guide, overflow: n.Overflow, figures: figuresOfNode(n)}
	if n.Kind.String() == "call" {
		r.name = n.Name
		if res := resources[n.Name]; res != nil {
			r.figures.History, r.figures.Marks = res.History, res.Marks
			r.figures.Minute.percentilesJSON = res.Minute.percentilesJSON
		}
	}
	own := len(rows)
	rows = append(rows, r)
	children := slices.Clone(n.Children)
	children = slices.DeleteFunc(children, func(c nodeJSON) bool { return c.Kind.String() == "entrance" && len(c.Children) == 0 })
	slices.SortStableFunc(children, func(a, b nodeJSON) int {
		x, y := figuresOfNode(&a), figuresOfNode(&b)
		return m.compare(&x, &y)
	})
	for i := range children {
		branch, next := "├─ ", "│  "
		if i == len(children)-1 {
			branch, next = "└─ ", "   "
		}
		rows = m.treeRows(rows, &children[i], r.key, below+branch, below+next, resources)
	}
	if len(rows) == own+1 && m.find != "" && !m.found(n.Name) {
		rows = rows[:own]
	}
	return rows
}

func figuresOfNode(n *nodeJSON) resourceJSON {
	of := func(c countsJSON) figuresJSON {
		f := figuresJSON{Pass: c.Pass, Block: c.Block, Complete: c.Complete, Exception: c.Exception}
		if timed := c.Exited - c.LongLived; timed > 0 {
			f.AvgRTMs = c.RTMs / float64(timed)
		}
		return f
	}
	return resourceJSON{Name: n.Name, Overflow: n.Overflow, InFlight: n.InFlight, Waiting: n.Waiting, LastSecond: of(n.LastSecond), Minute: of(n.Minute)}
}
