package sentinel

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/observe/inspect"
)

// nodeJSON is a node in the format of Sentinel's dashboard. Rates are whole numbers.
type nodeJSON struct {
	ID       string `json:"id,omitempty"`
	ParentID string `json:"parentId,omitempty"`
	Resource string `json:"resource"`

	ThreadNum          int64 `json:"threadNum"`
	PassQPS            int64 `json:"passQps"`
	BlockQPS           int64 `json:"blockQps"`
	TotalQPS           int64 `json:"totalQps"`
	AverageRT          int64 `json:"averageRt"`
	SuccessQPS         int64 `json:"successQps"`
	ExceptionQPS       int64 `json:"exceptionQps"`
	OneMinutePass      int64 `json:"oneMinutePass"`
	OneMinuteBlock     int64 `json:"oneMinuteBlock"`
	OneMinuteException int64 `json:"oneMinuteException"`
	OneMinuteTotal     int64 `json:"oneMinuteTotal"`

	Timestamp int64 `json:"timestamp"` // ms
}

func jsonOf(n *inspect.Node, at time.Time) nodeJSON {
	rates := n.Rates()
	return nodeJSON{
		Resource:  nameOf(n),
		ThreadNum: n.InFlight, PassQPS: int64(rates.Pass), BlockQPS: int64(rates.Block), TotalQPS: int64(n.TotalRate()),
		AverageRT: n.AvgRT().Milliseconds(), SuccessQPS: int64(rates.Complete), ExceptionQPS: int64(rates.Exception),
		OneMinutePass: n.Minute.Pass, OneMinuteBlock: n.Minute.Block, OneMinuteException: n.Minute.Exception, OneMinuteTotal: n.Minute.Total(),
		Timestamp: at.UnixMilli(),
	}
}

// nameOf returns Sentinel's name of a node.
func nameOf(n *inspect.Node) string {
	if n.Kind == inspect.NodeEntrance && n.Name == node.DefaultContext {
		return node.SentinelDefaultContext
	}
	return n.Name
}

// jsonTree returns the tree as a list, parents before children. A node always has the same id.
func (h *handler) jsonTree(question) (reply, error) {
	tree := h.guard.Tree()
	all := []nodeJSON{}
	var add func(n *inspect.Node, parent string)
	add = func(n *inspect.Node, parent string) {
		vo := jsonOf(n, tree.At)
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %v %v %s", parent, n.Kind, n.Overflow, n.Name))
		vo.ID, vo.ParentID = hex.EncodeToString(sum[:10]), parent
		all = append(all, vo)
		for i := range n.Children {
			add(&n.Children[i], vo.ID)
		}
	}
	add(&tree.Root, "")
	return object(all)
}

func (h *handler) clusterNodes(ask question) (reply, error) {
	tree := h.guard.Tree()
	notZero := strings.EqualFold(ask.Get("type"), "notZero")
	all := []nodeJSON{}
	for i := range tree.Resources {
		if n := &tree.Resources[i]; !notZero || n.Minute.Total() > 0 {
			all = append(all, jsonOf(n, tree.At))
		}
	}
	return object(all)
}

var errNoNode = badRequest("Invalid parameter: empty clusterNode name")

func (h *handler) clusterNode(ask question) (reply, error) {
	id := ask.Get("id")
	if id == "" {
		return reply{}, errNoNode
	}
	tree := h.guard.Tree()
	if n, ok := tree.Resource(id); ok {
		return object(jsonOf(n, tree.At))
	}
	return object(struct{}{})
}

func (h *handler) systemStatus(question) (reply, error) {
	in := h.guard.Tree().Inbound
	rates := in.Rates()
	return object(struct {
		Block     float64 `json:"b"`
		Pass      float64 `json:"qps"`
		RT        float64 `json:"r"`
		Completed float64 `json:"rqps"`
		InFlight  int64   `json:"t"`
	}{rates.Block, rates.Pass, milliseconds(in.AvgRT()), rates.Complete, in.InFlight})
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// tree returns the tree as text or, with an id, the subtree of the context with that name or,
// failing that, the subtrees of the contexts whose names contain it.
func (h *handler) tree(ask question) (reply, error) {
	tree := h.guard.Tree()
	roots := []inspect.Node{tree.Root}
	if id := ask.Get("id"); ask.Has("id") {
		entrances := tree.Root.Children
		exact := func(n inspect.Node) bool { return nameOf(&n) == id }
		if i := slices.IndexFunc(entrances, exact); i >= 0 {
			roots = entrances[i : i+1]
		} else {
			roots = slices.DeleteFunc(slices.Clone(entrances), func(n inspect.Node) bool { return !strings.Contains(nameOf(&n), id) })
		}
	}
	var out bytes.Buffer
	legend := ""
	render := func(root inspect.Node) (lines string) {
		var one strings.Builder
		tree.Root = root
		_ = tree.WriteSentinel(&one) // a builder never fails
		lines, legend, _ = strings.Cut(one.String(), blankLines)
		return lines
	}
	if len(roots) == 0 {
		render(inspect.Node{})
	}
	for _, root := range roots {
		out.WriteString(render(root))
	}
	out.WriteString(blankLines + legend)
	return text(out.String()), nil
}

const blankLines = "\r\n\r\n" // between the tree and its legend

// The layout of the tables of cnode and origin.
const (
	maxNodes   = 30
	maxOrigins = 120
	maxColumn  = 79 // columns of a name in a line; the remainder continues below
)

var (
	nodeColumns   = []column{{"thread", 10}, {"pass", 10}, {"blocked", 10}, {"success", 11}, {"total", 9}, {"aRt", 6}, {"1m-pass", 10}, {"1m-block", 11}, {"1m-all", 9}, {"exception", 11}}
	originColumns = []column{{"threadNum", 10}, {"passQps", 10}, {"blockQps", 11}, {"totalQps", 9}, {"aRt", 6}, {"1m-pass", 10}, {"1m-block", 11}, {"1m-total", 9}}
)

type column struct {
	name  string
	width int
}

// table writes nodes like Sentinel: a number, the name, and counts.
func table(out *bytes.Buffer, title string, columns []column, nodes []inspect.Node, figures func(*inspect.Node) []string) {
	names := make([][]rune, len(nodes))
	width := 0
	for i := range nodes {
		names[i] = []rune(shown.Name(nodes[i].Name, 4*maxColumn))
		width = max(width, len(names[i]))
	}
	width = min(width, maxColumn)
	line := func(number, name string, cells []string) {
		fmt.Fprintf(out, "%-4s%-*s", number, width+1, name)
		for i, c := range columns {
			cell := ""
			if cells != nil {
				cell = cells[i]
			}
			if len(cell) >= c.width { // Java's column is no wider, and runs into the next
				cell += " "
			}
			fmt.Fprintf(out, "%-*s", c.width, cell)
		}
		out.WriteByte('\n')
	}
	var heads []string
	for _, c := range columns {
		heads = append(heads, c.name)
	}
	line("idx", title, heads)
	for i := range nodes {
		cells := figures(&nodes[i])
		for number, rest := strconv.Itoa(i+1), names[i]; ; number, cells = "", nil {
			piece := rest[:min(width, len(rest))]
			line(number, string(piece), cells)
			if rest = rest[len(piece):]; len(rest) == 0 {
				break
			}
		}
	}
}

// double formats a number of a table with at most two decimals.
func double(v float64) string { return string(shown.AppendJavaDouble(nil, math.Round(v*100)/100)) }

func (h *handler) cnode(ask question) (reply, error) {
	id := ask.Get("id")
	if id == "" {
		return reply{}, errNoNode
	}
	var found []inspect.Node
	for _, n := range h.guard.Tree().Resources {
		if len(found) < maxNodes && strings.Contains(n.Name, id) {
			found = append(found, n)
		}
	}
	var out bytes.Buffer
	table(&out, "id", nodeColumns, found, func(n *inspect.Node) []string {
		rates := n.Rates()
		return []string{
			strconv.FormatInt(n.InFlight, 10), double(rates.Pass), double(rates.Block), double(rates.Complete), double(n.TotalRate()),
			double(milliseconds(n.AvgRT())), strconv.FormatInt(n.Minute.Pass, 10), strconv.FormatInt(n.Minute.Block, 10),
			strconv.FormatInt(n.Minute.Total(), 10), double(rates.Exception),
		}
	})
	return text(out.String()), nil
}

func (h *handler) origin(ask question) (reply, error) {
	id := ask.Get("id")
	if id == "" {
		return reply{}, errNoNode
	}
	tree := h.guard.Tree()
	found, ok := tree.Resource(id)
	for i := 0; !ok && i < len(tree.Resources); i++ { // within a name, like Sentinel: not at its start
		found = &tree.Resources[i]
		ok = strings.Index(found.Name, id) > 0
	}
	if !ok {
		return text("Not find cNode with id " + shown.Name(id, maxShown)), nil
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "id: %s\n\n", shown.Name(found.Name, 4*maxColumn))
	table(&out, "origin", originColumns, found.Origins[:min(maxOrigins, len(found.Origins))], func(n *inspect.Node) []string {
		rates := n.Rates()
		return []string{
			strconv.FormatInt(n.InFlight, 10), double(rates.Pass), double(rates.Block), double(n.TotalRate()), double(milliseconds(n.AvgRT())),
			strconv.FormatInt(n.Minute.Pass, 10), strconv.FormatInt(n.Minute.Block, 10), strconv.FormatInt(n.Minute.Total(), 10),
		}
	})
	return text(out.String()), nil
}
