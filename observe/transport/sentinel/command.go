package sentinel

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/rules"
)

// command is one path of the API.
type command struct {
	name   string
	about  string // Sentinel's description
	writes bool   // it changes something: POST only, and only with AllowRuleWrites
	run    func(h *handler, ask question) (reply, error)
}

// commands returns the supported commands, in the order in which the command api lists them.
// Sentinel's other commands are about things that Penstock does differently: they are unknown.
func commands() []command {
	return []command{
		{name: "api", about: "get all available command handlers", run: (*handler).api},
		{name: "version", about: "get sentinel version", run: func(*handler, question) (reply, error) { return text(version), nil }},
		{name: "basicInfo", about: "get sentinel config info", run: (*handler).basicInfo},
		{name: "getSwitch", about: "get sentinel switch status", run: func(*handler, question) (reply, error) { return text("Sentinel switch value: true"), nil }},
		{name: "systemStatus", about: "get system status", run: (*handler).systemStatus},
		{name: "metric", about: "get and aggregate metrics, accept param: startTime={startTime}&endTime={endTime}&maxLines={maxLines}&identify={resourceName}", run: (*handler).metric},
		{name: "clusterNode", about: "get all clusterNode VO, use type=notZero to ignore those nodes with totalRequest <=0", run: (*handler).clusterNodes},
		{name: "clusterNodeById", about: "get clusterNode VO by id, request param: id={resourceName}", run: (*handler).clusterNode},
		{name: "cnode", about: "get clusterNode metrics by id, request param: id={resourceName}", run: (*handler).cnode},
		{name: "origin", about: "get origin clusterNode by id, request param: id={resourceName}", run: (*handler).origin},
		{name: "tree", about: "get metrics in tree mode, use id to specify detailed tree root", run: (*handler).tree},
		{name: "jsonTree", about: "get tree node VO start from root node", run: (*handler).jsonTree},
		{name: "getRules", about: "get all active rules by type, request param: type={ruleType}", run: (*handler).getRules},
		{name: "setRules", about: "modify the rules, accept param: type={ruleType}&data={ruleJson}", writes: true, run: (*handler).setRules},
		{name: "getParamFlowRules", about: "Get all parameter flow rules", run: (*handler).getParamRules},
		{name: "setParamFlowRules", about: "Set parameter flow rules, while previous rules will be replaced.", writes: true, run: (*handler).setParamRules},
		{name: "getClusterMode", about: "get cluster mode status", run: (*handler).clusterMode},
	}
}

// question is a request of a command.
type question struct {
	url.Values
	from string // the client's address
}

// reply is the response of a command.
type reply struct {
	contentType string
	body        []byte
}

func text(s string) reply { return reply{"text/plain; charset=utf-8", []byte(s)} }

// object returns a value as JSON.
func object(v any) (reply, error) {
	body, err := json.Marshal(v)
	return reply{"application/json; charset=utf-8", body}, err
}

// refused is the reason for not executing a command, with a status.
type refused struct {
	status int
	why    string
}

func (r *refused) Error() string { return r.why }

func refuse(status int, format string, args ...any) error {
	return &refused{status, fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) error {
	return refuse(http.StatusBadRequest, format, args...)
}

// handler handles commands: one at a time, plus one that changes rules. So regardless of the number
// of clients, one goroutine reads the nodes and one response is built at a time; responses are sent
// without a lock.
type handler struct {
	guard *api.Guard
	*checked
	commands []command
	cross    *http.CrossOriginProtection
	one      sync.Mutex
	writing  sync.Mutex    // in place of one, for commands that change rules
	reading  chan struct{} // limits forms being read, before either
}

func newHandler(guard *api.Guard, c *checked) *handler {
	return &handler{guard: guard, checked: c, commands: commands(), cross: http.NewCrossOriginProtection(), reading: make(chan struct{}, maxForms)}
}

const (
	maxForm  = 3 * rules.MaxFileSize // a form triples quotes and braces
	maxForms = 8                     // being read at a time
	maxShown = 100                   // columns of client text in an error
)

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if r.ContentLength != 0 && r.Body != nil {
		// The server reads the remainder of a body after the response, for at most this long.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadTimeout))
	}
	answer, err := h.answer(w, r)
	status := http.StatusOK
	if err != nil {
		status, answer = http.StatusBadRequest, text(err.Error())
		if no, ok := errors.AsType[*refused](err); ok {
			status = no.status
		}
	}
	w.Header().Set("Content-Type", answer.contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(answer.body)))
	w.WriteHeader(status)
	_, _ = w.Write(answer.body) // fails when the client has disconnected
}

func (h *handler) answer(w http.ResponseWriter, r *http.Request) (reply, error) {
	if !h.allows(r.RemoteAddr) {
		return reply{}, refuse(http.StatusForbidden, "the command API doesn't serve your address (AllowFrom)")
	}
	if !h.knows(r.Host) {
		return reply{}, refuse(http.StatusForbidden, "unknown host name: use the IP address of the command API, or add the name (Hosts)")
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	if strings.TrimSpace(name) == "" {
		return reply{}, badRequest("Invalid command")
	}
	for i := range h.commands {
		if c := &h.commands[i]; c.name == name {
			return h.run(c, w, r)
		}
	}
	return reply{}, badRequest("Unknown command `%s`", shown.Name(name, maxShown))
}

func (h *handler) run(c *command, w http.ResponseWriter, r *http.Request) (reply, error) {
	switch {
	case r.Method == http.MethodPost:
		if err := h.cross.Check(r); err != nil {
			return reply{}, refuse(http.StatusForbidden, "a web page of another site can't send this request")
		}
		if err := h.form(w, r); err != nil {
			return reply{}, err
		}
	case c.writes || r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", http.MethodPost)
		if !c.writes {
			w.Header().Set("Allow", "GET, HEAD, POST")
		}
		return reply{}, refuse(http.StatusMethodNotAllowed, "%s doesn't support %.20s", c.name, r.Method)
	}
	if c.writes && !h.AllowRuleWrites {
		return reply{}, refuse(http.StatusForbidden, "rules can't be changed from here (AllowRuleWrites)")
	}
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	if r.Form == nil {
		r.Form = r.URL.Query()
	}
	one := &h.one
	if c.writes { // it may take seconds, and involves the store
		one = &h.writing
	}
	one.Lock()
	defer one.Unlock()
	return c.run(h, question{r.Form, from})
}

// form reads a form. Only a few are read at the same time, so that half-sent forms don't take all
// connections.
func (h *handler) form(w http.ResponseWriter, r *http.Request) error {
	kind := r.Header.Get("Content-Type")
	if name, _, err := mime.ParseMediaType(kind); kind != "" && (err != nil || name != "application/x-www-form-urlencoded") {
		return refuse(http.StatusUnsupportedMediaType, "Only form-encoded post request is supported")
	}
	if r.ContentLength <= 0 {
		return refuse(http.StatusLengthRequired, "No legal Content-Length")
	}
	if kind == "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	select {
	case h.reading <- struct{}{}:
		defer func() { <-h.reading }()
	default:
		w.Header().Set("Retry-After", "1")
		return refuse(http.StatusServiceUnavailable, "too many concurrent forms: try again")
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(requestTimeout))
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	err := r.ParseForm()
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return refuse(http.StatusRequestEntityTooLarge, "the form is longer than %d bytes", maxForm)
	}
	if err != nil {
		return badRequest("the form can't be read")
	}
	return nil
}

func (h *handler) api(question) (reply, error) {
	type about struct {
		URL  string `json:"url"`
		Desc string `json:"desc"`
	}
	var all []about
	for _, c := range h.commands {
		all = append(all, about{"/" + c.name, c.about})
	}
	return object(all)
}

func (h *handler) basicInfo(question) (reply, error) {
	ip := h.IP
	if ip == "" {
		ip = h.ownIP()
	}
	return object(struct {
		Machine string `json:"machine"`
		IP      string `json:"ip"`
	}{hostname(), ip})
}

// ownIP returns the machine's address: the one the API listens at, or the first that is not a
// loopback address.
func (h *handler) ownIP() string {
	if ip := h.at.Addr(); !ip.IsUnspecified() {
		return ip.WithZone("").String()
	}
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsGlobalUnicast() {
			return p.Addr().String()
		}
	}
	return "127.0.0.1"
}

// clusterMode returns the mode of a program that is neither a client nor a server of a Sentinel
// cluster.
func (h *handler) clusterMode(question) (reply, error) {
	return object(struct {
		Mode            int   `json:"mode"`
		LastModified    int64 `json:"lastModified"`
		ClientAvailable bool  `json:"clientAvailable"`
		ServerAvailable bool  `json:"serverAvailable"`
	}{Mode: -1})
}
