package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// logs has calls of hostile names refused, and reads the block log.
func logs(r *round) error {
	var log bytes.Buffer
	handler := pick[slog.Handler](r, slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil))
	g, _ := r.guard(api.Config{Logger: slog.New(handler)})
	id := hostileName(r, 1000)
	err := g.LoadRules(rules.Set{Flow: []flow.Rule{{ID: id, Resource: ".*", Match: spec.MatchRegex}}})
	if err != nil {
		return nil
	}
	log.Reset()
	calls := pick(r, 30, 30, 3000)
	for i := range calls {
		r.offered.Add(1)
		e, _ := g.Entry(r.ctx, hostileName(r, 1000)+strconv.Itoa(i))
		e.Exit()
	}
	r.checked.Add(2)
	for line := range strings.Lines(log.String()) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case !utf8.ValidString(line) || strings.ContainsFunc(line, func(c rune) bool { return dangerous(c) || c == '\n' }):
			return fmt.Errorf("the log holds what a terminal obeys: %q", line)
		case len(line) > maxLine:
			return fmt.Errorf("a line of the log has %d bytes: %q", len(line), line)
		case line != "" && !strings.Contains(line, "level"):
			return fmt.Errorf("a line of the log was broken: %q", line)
		}
	}
	if log.Len() > maxFlood {
		return fmt.Errorf("%d refused calls of new names at one instant make %d bytes of log", calls, log.Len())
	}
	return nil
}

const (
	maxLine  = 2 << 10   // of one line of the block log
	maxFlood = 256 << 10 // of what one instant writes into it
)
