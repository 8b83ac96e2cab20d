package console

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
)

// serveExplain returns the decisions of the rules for a call arriving now, with the assumptions about
// parts of the call that the query leaves out.
func (c *console) serveExplain(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	ctx := api.WithOrigin(api.WithContext(r.Context(), q.Get("context")), q.Get("origin"))
	opts, err := optionsOf(q)
	if err != nil {
		return err
	}
	return c.reply(w, func() (any, error) {
		x, err := c.guard.Explain(ctx, q.Get("resource"), opts...)
		if err != nil {
			return nil, refuse(http.StatusBadRequest, "%v", err)
		}
		return struct {
			core.Explanation
			Assumed []string `json:"assumed"`
			Text    string   `json:"text"`
		}{x, assumptions(q), x.String()}, nil
	})
}

// assumptions returns the assumptions about parts of the call that the query leaves out. A call is
// inbound, like calls of server adapters: system rules apply only to those, and would be missing from
// the response.
func assumptions(q url.Values) []string {
	assumed := []string{}
	for _, a := range []struct{ key, text string }{
		{"inbound", "inbound"}, {"units", "one unit"}, {"prioritized", "not prioritized"},
		{"origin", "no caller"}, {"context", "the default context"}, {"endpoint", "no endpoint"},
	} {
		if q.Get(a.key) == "" {
			assumed = append(assumed, a.text)
		}
	}
	for key := range q {
		if strings.HasPrefix(key, "arg.") {
			return assumed
		}
	}
	return append(assumed, "no arguments")
}

// mostArgs limits the index of an argument.
const mostArgs = 100

// optionsOf returns the options of a call from a query.
func optionsOf(q url.Values) (opts []api.Option, err error) {
	var args []any
	inbound := true
	for _, key := range slices.Sorted(maps.Keys(q)) {
		value := q.Get(key)
		switch {
		case value == "" || slices.Contains([]string{"resource", "context", "origin"}, key):
		case key == "units":
			n, err := wholeNumber(q, key, 1)
			if err != nil {
				return nil, err
			}
			opts = append(opts, api.Units(n))
		case key == "inbound" || key == "prioritized":
			on, err := strconv.ParseBool(value)
			if err != nil {
				return nil, refuse(http.StatusBadRequest, "%s is %q: use true or false", key, shortened(value))
			}
			if key == "inbound" {
				inbound = on
			} else if on {
				opts = append(opts, api.Prioritized())
			}
		case key == "endpoint":
			opts = append(opts, api.Endpoint(value))
		case strings.HasPrefix(key, "arg."):
			name := strings.TrimPrefix(key, "arg.")
			i, err := strconv.Atoi(name)
			switch {
			case err != nil:
				opts = append(opts, api.Param(name, argumentOf(value)))
			case i < 0 || i >= mostArgs:
				return nil, refuse(http.StatusBadRequest, "arguments are numbered from 0 to %d", mostArgs-1)
			default:
				args = append(args, make([]any, max(0, i+1-len(args)))...)
				args[i] = argumentOf(value)
			}
		case strings.HasPrefix(key, "cost."):
			n, err := wholeNumber(q, key, 1)
			if err != nil {
				return nil, err
			}
			opts = append(opts, api.Cost(strings.TrimPrefix(key, "cost."), int64(n)))
		default:
			return nil, refuse(http.StatusBadRequest, "%q is unknown: use resource, context, origin, units, inbound, prioritized, endpoint, arg.NAME and cost.UNIT", shortened(key))
		}
	}
	if inbound {
		opts = append(opts, api.Inbound())
	}
	if args != nil {
		opts = append(opts, api.Args(args...))
	}
	return opts, nil
}

// argumentOf parses a value: a number, true or false, or text; text may be quoted.
func argumentOf(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	var v any
	if json.Unmarshal([]byte(text), &v) == nil {
		switch v.(type) {
		case bool, float64, string:
			return v
		}
	}
	return text
}
