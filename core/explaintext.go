package core

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/shown"
)

// textWidth is the maximum number of columns of a line.
const textWidth = 80

// String returns the explanation as text: first the verdict on the call, then each rule that
// applies, then the rules that were left out. No line has more than 80 columns.
func (x Explanation) String() string {
	t := new(explainText)
	t.line(0, "%s%s%s", shown.Label(x.Resource), named(", from ", x.Origin), named(", in context ", x.Context))
	t.line(0, "%s", x.verdict())
	for i := range x.Rules {
		t.rule(&x, &x.Rules[i])
	}
	if len(x.Rules) == 0 {
		t.line(0, "no rule applies")
	}
	if len(x.LeftOut) > 0 {
		t.line(0, "")
		t.line(0, "left out:")
	}
	for _, c := range x.LeftOut {
		t.line(2, "%v %s: %s", c.Kind, shown.Label(c.ID), c.Reason)
	}
	return t.String()
}

// WriteTo writes the result of String.
func (x Explanation) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, x.String())
	return int64(n), err
}

func named(before, name string) string {
	if name == "" {
		return ""
	}
	return before + shown.Name(name, 16)
}

// verdict returns the outcome of the call as text.
func (x *Explanation) verdict() string {
	if x.Outcome == Unknown {
		for _, r := range x.Rules {
			if r.Outcome == Unknown && r.Kind != KindCustom && r.Mode == spec.Enforce {
				return fmt.Sprintf("passes or is refused by chance: see %v %s", r.Kind, shown.Label(r.ID))
			}
		}
		return "no rule refuses it; custom slots may"
	}
	if x.By < 0 {
		return "passes"
	}
	by := fmt.Sprintf("%v %s", x.Rules[x.By].Kind, shown.Label(x.Rules[x.By].ID))
	switch {
	case x.Draining:
		return "refused: the server is draining, and the call would wait for " + by
	case x.GivesUp:
		return "refused: its context ends before " + by + " admits it"
	case x.Outcome == Waits && x.Runs.IsZero():
		return "waits in the queue of " + by + " until other calls end"
	case x.Outcome == Waits:
		return fmt.Sprintf("waits %s for %s", shown.Duration(x.Runs.Sub(x.At)), by)
	case x.Next.IsZero():
		return "refused by " + by
	}
	return fmt.Sprintf("refused by %s for another %s", by, shown.Duration(x.Next.Sub(x.At)))
}

// explainText consists of lines of limited width.
type explainText struct{ strings.Builder }

// line writes a line of printable text, truncated if it is too long.
func (t *explainText) line(indent int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if most := textWidth - indent; shown.Columns([]byte(text)) > most {
		width, end := 1, 0 // of the dots
		for i, r := range text {
			if width += shown.Columns([]byte(string(r))); width > most {
				end = i
				break
			}
		}
		text = text[:end] + "…"
	}
	if text != "" {
		t.WriteString(strings.Repeat(" ", indent) + text)
	}
	t.WriteByte('\n')
}

func (t *explainText) rule(x *Explanation, r *ExplainedRule) {
	mode := ""
	if r.Mode != spec.Enforce {
		mode = fmt.Sprintf(" (%v)", r.Mode)
	}
	t.line(0, "")
	t.line(0, "%v %s%s: %s", r.Kind, shown.Label(r.ID), mode, r.outcome(x.At))
	if r.Resource != "" {
		t.line(2, "%s: %s", shown.Label(r.Resource), r.Reason)
	} else {
		t.line(2, "%s", r.Reason)
	}
	switch {
	case r.Why == "":
	case r.Kind == KindCustom:
		t.line(2, "%s", shown.Name(r.Why, textWidth)) // text from the program
	default:
		t.line(2, "%s", r.Why)
	}
	for _, m := range r.Measures {
		t.line(2, "%s", m.text())
	}
}

// outcome returns the rule's verdict on the call as text.
func (r *ExplainedRule) outcome(at time.Time) string {
	switch {
	case r.Outcome == NotJudged:
		return "does not apply to this call"
	case r.Outcome == Waits && r.Runs.IsZero():
		return "waits for other calls to end"
	case r.Outcome == Waits:
		return "waits " + shown.Duration(r.Runs.Sub(at))
	case r.Outcome == Refused && r.Next.IsZero():
		return "refused"
	case r.Outcome == Refused && r.About:
		return "refused for about another " + shown.Duration(r.Next.Sub(at))
	case r.Outcome == Refused:
		return "refused for another " + shown.Duration(r.Next.Sub(at))
	}
	return r.Outcome.String()
}

// text returns the measure as text.
func (m *Measure) text() string {
	of := shown.Name(m.Of, textWidth)
	if m.For != "" {
		of = shown.Name(m.For, 24) + ": " + of
	}
	if m.AtHand {
		return fmt.Sprintf("%s: %s, of %s for all members", of, shown.Number(m.Measured), shown.Number(m.Limit))
	}
	text := fmt.Sprintf("%s: %s%s of %s%s", of, shown.Number(m.Measured), shown.Name(m.Unit, 8), shown.Number(m.Limit), shown.Name(m.Unit, 8))
	if m.Remaining != nil {
		text += ", " + string(shown.AppendCount(nil, *m.Remaining)) + " left"
	}
	return text
}
