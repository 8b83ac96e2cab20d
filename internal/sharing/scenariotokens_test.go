package sharing

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// tokensScript drives the lease of a bucket that gains a unit each 10 ms, with a burst of 10.
func tokensScript(s *scenario) script {
	t := tokens{spacing: int64(10 * time.Millisecond), slack: int64(100 * time.Millisecond)}
	token := map[string]int64{}
	runs := func() string {
		var all []string
		for i := range t.runs {
			if r := t.at(t.runs[i], s.now); r.left > 0 && r.early < r.next {
				all = append(all, fmt.Sprintf("%d from %v or %v", r.left, span(r.early), span(r.next)))
			} else if r.left > 0 {
				all = append(all, fmt.Sprintf("%d from %v", r.left, span(r.next)))
			}
		}
		return cmp.Or(strings.Join(all, ", "), "none left")
	}
	// named returns the name of a call among the arguments.
	named := func() string {
		for name := range s.args {
			if len(name) == 1 {
				delete(s.args, name)
				return name
			}
		}
		return ""
	}
	return script{
		"reply": func() string {
			c := &store.Tokens{Hold: span(s.at("hold", 0)), Reply: store.TurnReply{Granted: s.units(), Wait: span(s.at("wait", 0))}}
			t.add(c, s.at("sent", s.now), s.now)
			return runs()
		},
		"take": func() string {
			n, name := s.units(), named()
			got, ok := t.take(s.now, n)
			if !ok {
				return "too few: " + runs()
			}
			token[name] = got
			return "it runs, " + runs()
		},
		"back": func() string {
			n, name := s.units(), named()
			token[name] = t.giveBack(s.now, token[name], n)
			return runs()
		},
		"drain": func() string { return fmt.Sprintf("%d, %s", t.drain(s.now, s.units()), runs()) },
		"drop":  func() string { t.drop(); return runs() },
		"look":  runs,
	}
}
