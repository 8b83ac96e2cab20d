package inspect

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// How many resources /nodes shows at once.
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
	var nodes []Node
	total := 0
	resources := h.snapshots.take().Resources
	for i := range resources {
		if !ask.wants(&resources[i]) {
			continue
		}
		if total >= ask.offset && len(nodes) < ask.limit {
			nodes = append(nodes, resources[i])
		}
		total++
	}
	w.Header().Set("X-Total-Count", strconv.Itoa(total))
	body, err := json.Marshal(newNodesJSON(nodes))
	reply(w, jsonText, body, err)
}

// nodesQuery is what is asked of /nodes.
type nodesQuery struct {
	id            string
	notZero       bool
	limit, offset int
}

func (q *nodesQuery) wants(n *Node) bool {
	return strings.Contains(n.Name, q.id) && (!q.notZero || n.Minute.Total() > 0)
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
