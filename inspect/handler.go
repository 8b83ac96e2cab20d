package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

const index = `penstock, read-only

/tree    the tree of calls as text; ?format=sentinel or ?format=json for others
/nodes   the resources and their callers as JSON; ?id=orders for those with that
         in their name, ?notZero=true for those asked for within the last minute,
         ?limit=1000&offset=0 for a part; X-Total-Count says how many there are
/rules   the rules in force as YAML; ?format=json for JSON
`

// Handler serves an engine's tree and the rules in force, which set returns, over
// HTTP: GET and HEAD only, and nothing is ever changed. The path / lists what there
// is. Mount it below a prefix with [http.StripPrefix].
//
// It knows no users. Names of resources and callers, traffic and rules are for
// whoever reaches it to see, so the caller decides who does: listen on a loopback
// address, or put authentication in front. A browser can be tricked into asking a
// loopback address under another site's name, so put an allow-list of Host headers
// in front as well where browsers run.
//
// Requests that come at the same time share one snapshot, so hammering it costs no
// more than one goroutine reading the nodes, and the rendering.
func Handler(e *core.Engine, set func() rules.Set) http.Handler {
	h := &handler{snapshots: snapshots{engine: e}, set: set}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { reply(w, plainText, []byte(index), nil) })
	mux.HandleFunc("GET /tree", h.tree)
	mux.HandleFunc("GET /nodes", h.nodes)
	mux.HandleFunc("GET /rules", h.rules)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

type handler struct {
	snapshots snapshots
	set       func() rules.Set
}

func (h *handler) tree(w http.ResponseWriter, r *http.Request) {
	format, ok := formatOf(w, r, "text", "sentinel", "json")
	if !ok {
		return
	}
	tree := h.snapshots.take()
	if format == "json" {
		body, err := json.Marshal(tree)
		reply(w, jsonText, body, err)
		return
	}
	write := tree.WriteText
	if format == "sentinel" {
		write = tree.WriteSentinel
	}
	var body bytes.Buffer
	err := write(&body)
	reply(w, plainText, body.Bytes(), err)
}

func (h *handler) rules(w http.ResponseWriter, r *http.Request) {
	format, ok := formatOf(w, r, "yaml", "json")
	if !ok {
		return
	}
	set := h.set()
	if format == "json" {
		body, err := json.Marshal(set)
		reply(w, jsonText, body, err)
		return
	}
	body, err := set.YAML()
	reply(w, yamlText, body, err)
}

// formatOf is the format that the request asks for, the first one unless it says
// otherwise. It replies itself if there is no such format.
func formatOf(w http.ResponseWriter, r *http.Request, formats ...string) (format string, ok bool) {
	w.Header().Set("Vary", "Accept")
	asked := r.URL.Query().Get("format")
	if asked == "" && acceptsJSON(r.Header.Get("Accept")) {
		asked = "json"
	}
	for _, format := range formats {
		if asked == format || asked == "" {
			return format, true
		}
	}
	http.Error(w, fmt.Sprintf("format is %q: use one of %s", asked, strings.Join(formats, ", ")), http.StatusBadRequest)
	return "", false
}

func acceptsJSON(accept string) bool {
	for item := range strings.SplitSeq(accept, ",") {
		if name, _, err := mime.ParseMediaType(item); err == nil && name == "application/json" {
			return true
		}
	}
	return false
}
