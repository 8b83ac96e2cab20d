package console

import (
	"net/http"
	"sync"

	"github.com/penstock-go/penstock/api"
)

// console is the state that the requests of one server share.
type console struct {
	guard  *api.Guard
	config Config

	origins   *http.CrossOriginProtection
	reading   chan struct{} // one element for each body being read
	answering chan struct{} // one element for each request being served
	requests  sync.WaitGroup
	unread    answers
	making    sync.Mutex // one response is made at a time, so that readers use at most one processor
	rules     ruleTexts  // guarded by making, like sharing
	sharing   sharing
	tree      http.Handler
	changes   timeline
	events    *hub
	endOf     []func()
}

func newConsole(guard *api.Guard, cfg Config) *console {
	c := &console{
		guard: guard, config: cfg,
		origins:   http.NewCrossOriginProtection(),
		reading:   make(chan struct{}, maxBodies),
		answering: make(chan struct{}, maxRequests),
		tree:      guard.Handler(),
	}
	c.events = newHub(c)
	c.endOf = []func(){guard.KeepRefusals(), guard.OnBreaker(c.changes.add)}
	return c
}

func (c *console) close() {
	for _, end := range c.endOf {
		end()
	}
	c.events.close()
}

const eventsPath = "/api/events"

// routes returns everything that is served.
func (c *console) routes() []route {
	all := []route{
		{"GET", "/api/tree", reads, c.serveTree},
		{"GET", "/api/resources", reads, c.serveResources},
		{"GET", "/api/resources/{name}", reads, c.serveResource},
		{"GET", "/api/resource", reads, c.serveResource},
		{"GET", "/api/rules", reads, c.serveRules},
		{"GET", "/api/breakers", reads, c.serveBreakers},
		{"GET", "/api/explain", reads, c.serveExplain},
		{"GET", eventsPath, reads, c.serveEvents},
		{"POST", "/api/rules/diff", changes, c.serveDiff},
		{"POST", "/api/rules/apply", changes, c.serveApply},
	}
	return append(all, pageRoutes()...)
}

// serveTree serves the tree in the format of package inspect.
func (c *console) serveTree(w http.ResponseWriter, r *http.Request) error {
	asked := r.Clone(r.Context())
	asked.URL.Path, asked.URL.RawPath, asked.URL.RawQuery = "/tree", "", "format=json"
	c.tree.ServeHTTP(w, asked)
	return nil
}
