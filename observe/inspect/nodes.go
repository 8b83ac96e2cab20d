package inspect

import (
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// The limits on the number of resources in /nodes.
const (
	usualLimit = 1_000
	maxLimit   = 10_000
)

func (h *handler) nodes(w http.ResponseWriter, r *http.Request) {
	ask, err := parseNodesQuery(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.read(w, func(tree view) {
		w.Header().Set("X-Total-Count", strconv.Itoa(ask.count(tree.resources)))
		reply(w, r, jsonText, func(out io.Writer) error {
			j := newJSONWriter(out)
			j.text("[")
			j.nodes(ask.part(tree.resources))
			j.text("]")
			return j.flush()
		})
	})
}

// nodesQuery is the query of /nodes.
type nodesQuery struct {
	id            string
	notZero       bool
	limit, offset int
}

func (q *nodesQuery) wants(n *Node) bool {
	return strings.Contains(n.Name, q.id) && (!q.notZero || n.Minute.Total() > 0)
}

// count returns the total number of matching resources.
func (q *nodesQuery) count(resources iter.Seq[visit]) (total int) {
	for v := range resources {
		if v.depth == 0 && q.wants(v.Node) {
			total++
		}
	}
	return total
}

// part yields the resources of the requested part, each followed by its callers.
func (q *nodesQuery) part(resources iter.Seq[visit]) iter.Seq[visit] {
	return func(yield func(visit) bool) {
		wanted, inside := 0, false
		for v := range resources {
			if v.depth == 0 {
				if inside = q.wants(v.Node); inside {
					wanted++
				}
				inside = inside && wanted > q.offset
				if wanted > q.offset && wanted-q.offset > q.limit {
					return
				}
			}
			if inside && !yield(v) {
				return
			}
		}
	}
}

func parseNodesQuery(v url.Values) (q nodesQuery, err error) {
	q.id = v.Get("id")
	if text := v.Get("notZero"); text != "" {
		if q.notZero, err = strconv.ParseBool(text); err != nil {
			return q, fmt.Errorf("notZero is %q: use true or false", text)
		}
	}
	if q.limit, err = wholeNumber(v, "limit", usualLimit); err != nil {
		return q, err
	}
	q.limit = min(q.limit, maxLimit)
	q.offset, err = wholeNumber(v, "offset", 0)
	return q, err
}

func wholeNumber(v url.Values, name string, usual int) (int, error) {
	text := v.Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s is %q: use a whole number from 0", name, text)
	}
	return n, nil
}
