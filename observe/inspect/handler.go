package inspect

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/rules"
)

const index = `penstock, read-only

/tree    the tree of calls as text; ?format=sentinel or ?format=json for others
/nodes   the resources and their callers as JSON; ?id=orders for those with that
         in their name, ?notZero=true for those asked for within the last minute,
         ?limit=1000&offset=0 for a part; X-Total-Count says how many there are
/rules   the rules in force as YAML; ?format=json for JSON
`

// Handler serves an engine's tree and the rules in force, which set returns, over HTTP, read-only: GET
// and HEAD. The path / lists the other paths. Mount it below a prefix with [http.StripPrefix].
//
// It has no authentication. Any client can see names of resources and callers, traffic and rules, so
// restrict the clients: listen on a loopback address, or put authentication in front. A browser can
// be tricked into asking a loopback address under another site's name, so if browsers run there,
// put an allow-list of Host headers in front as well.
//
// Readers that arrive at the same time share one copy of the nodes, which is rendered as they read
// it. At most 256 readers are served at the same time, and at most 32 MiB of copies are kept for
// slow readers, across all paths; further readers get 503 with Retry-After. A reader slower
// than 64 KiB per second is cut off after ten seconds, or after the server's WriteTimeout if that is
// shorter.
func Handler(e *engine.Engine, set func() rules.Set) http.Handler {
	h := newHandler(e, set)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		reply(w, r, plainText, func(out io.Writer) error {
			_, err := io.WriteString(out, index)
			return err
		})
	})
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
	trees      copies[packed]
	yaml, json copies[rendered]
}

// rendered is a text, or an error instead.
type rendered struct {
	body []byte
	err  error
}

func newHandler(e *engine.Engine, set func() rules.Set) *handler {
	room := new(room)
	var end packedPlace // of the latest copy; guarded by room.making
	render := func(write func(rules.Set) ([]byte, error)) copies[rendered] {
		return copies[rendered]{room: room, make: func() (*rendered, int) {
			body, err := write(set())
			return &rendered{body, err}, cap(body)
		}}
	}
	return &handler{
		trees: copies[packed]{room: room, drop: (*packed).recycle, make: func() (*packed, int) {
			p := pack(e, end)
			end = p.end(0)
			return p, p.size()
		}},
		yaml: render(rules.Set.YAML),
		json: render(rules.Set.MarshalJSON),
	}
}

// read calls use with the current tree, unless there are too many readers.
func (h *handler) read(w http.ResponseWriter, use func(view)) {
	if !h.trees.read(func(p *packed) { use(p.view()) }) {
		busy(w)
	}
}

func (h *handler) tree(w http.ResponseWriter, r *http.Request) {
	format, ok := formatOf(w, r, "text", "sentinel", "json")
	if !ok {
		return
	}
	h.read(w, func(tree view) {
		switch format {
		case "json":
			reply(w, r, jsonText, tree.writeJSON)
		case "sentinel":
			reply(w, r, plainText, tree.writeSentinel)
		default:
			reply(w, r, plainText, tree.writeText)
		}
	})
}

func (h *handler) rules(w http.ResponseWriter, r *http.Request) {
	format, ok := formatOf(w, r, "yaml", "json")
	if !ok {
		return
	}
	texts, contentType := &h.yaml, yamlText
	if format == "json" {
		texts, contentType = &h.json, jsonText
	}
	read := texts.read(func(text *rendered) {
		if text.err != nil {
			http.Error(w, text.err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(text.body)))
		reply(w, r, contentType, func(out io.Writer) error {
			_, err := out.Write(text.body)
			return err
		})
	})
	if !read {
		busy(w)
	}
}

// formatOf returns the format that the request asks for, by default the first. It replies itself if
// there is no such format.
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
