package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/rules"
)

// edit is a requested change of the rules that code has loaded.
type edit struct {
	// Rules have the form of a rule file: each replaces the rule of its family and ID, or is added.
	Rules json.RawMessage `json:"rules,omitempty"`
	// Remove are rules to remove.
	Remove []ruleID `json:"remove,omitempty"`
	// Proof is the proof from the response to the diff of this change. Only /api/rules/apply uses it.
	Proof string `json:"proof,omitempty"`
}

type ruleID struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// change is the effect of an edit.
type change struct {
	Change string `json:"change"` // such as "+0 ~1 -0"
	Diff   string `json:"diff"`   // for people
	Proof  string `json:"proof"`  // that this diff was shown, for /api/rules/apply
	lines  []string
}

// errShown ends an edit that was only shown.
var errShown = errors.New("shown")

// serveDiff shows the effect of an edit, without applying it.
func (c *console) serveDiff(w http.ResponseWriter, r *http.Request) error {
	e, err := readEdit(r)
	if err != nil {
		return err
	}
	return c.reply(w, func() (any, error) {
		var made change
		err := c.guard.EditRules(func(loaded api.RuleSet) (_ api.RuleSet, err error) {
			if _, made, err = e.apply(loaded); err != nil {
				return api.RuleSet{}, err
			}
			return api.RuleSet{}, errShown
		})
		if !errors.Is(err, errShown) {
			return nil, unacceptable(err)
		}
		return made, nil
	})
}

// serveApply applies an edit whose diff was shown, if its effect is still the same.
func (c *console) serveApply(w http.ResponseWriter, r *http.Request) error {
	e, err := readEdit(r)
	if err != nil {
		return err
	}
	var made change
	err = c.guard.EditRules(func(loaded api.RuleSet) (set api.RuleSet, err error) {
		if set, made, err = e.apply(loaded); err != nil {
			return set, err
		}
		if subtle.ConstantTimeCompare([]byte(made.Proof), []byte(e.Proof)) != 1 {
			return set, refuse(http.StatusConflict, "this change was not shown: get its diff from /api/rules/diff and send its proof")
		}
		return set, nil
	})
	log := c.guard.Logger()
	if err != nil {
		log.Warn("penstock: console: rules not changed", "from", r.RemoteAddr, "error", shown.Name(err.Error(), loggedWidth))
		return unacceptable(err)
	}
	status := c.guard.Status()
	log.Info("penstock: console: rules changed", "from", r.RemoteAddr, "change", made.Change, "what", made.logged(),
		"revision", status.Number, "hash", status.Hash)
	body, err := json.Marshal(struct {
		Revision uint64 `json:"revision"`
		Hash     string `json:"hash"`
		change
	}{status.Number, status.Hash, made})
	if err != nil {
		return err
	}
	c.unread.add(len(body)) // even if there is no room: the rules have changed
	return c.write(w, body)
}

// The limits on a logged change.
const (
	loggedWidth = 400
	loggedLines = 10
)

// logged returns the change in one line, up to the limit for logs.
func (c change) logged() string {
	lines := c.lines
	more := len(lines) - loggedLines
	lines = slices.Clone(lines[:min(len(lines), loggedLines)])
	for i := range lines {
		lines[i] = shown.Name(lines[i], loggedWidth)
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "; ")
}

// unacceptable is the error for rules that are invalid, alone or with the rules of other sources.
func unacceptable(err error) error {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	return refuse(http.StatusUnprocessableEntity, "%v", err)
}

func readEdit(r *http.Request) (e edit, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return e, refuse(http.StatusUnsupportedMediaType, "send JSON, with Content-Type: application/json")
	}
	in := json.NewDecoder(r.Body)
	in.DisallowUnknownFields()
	if err = in.Decode(&e); err == nil {
		if _, more := in.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("unexpected data after the JSON object")
		}
	}
	if err != nil {
		return e, refuse(http.StatusBadRequest, "%v", err)
	}
	return e, nil
}

// apply returns the set after the edit, and the change.
func (e edit) apply(loaded api.RuleSet) (set api.RuleSet, made change, err error) {
	lists, err := listsOf(loaded)
	if err != nil {
		return set, made, refuse(http.StatusConflict, "the loaded rules can't be encoded, so they can't be changed here: %v", err)
	}
	ids := make(map[string][]string) // the IDs of loaded, in order, including generated ones
	for _, r := range rules.Diff(api.RuleSet{}, loaded).Added {
		ids[r.Family] = append(ids[r.Family], r.ID)
	}
	if len(e.Rules) > 0 {
		if err := e.put(lists, ids); err != nil {
			return set, made, err
		}
	}
	for _, r := range e.Remove {
		at := slices.Index(ids[r.Kind], r.ID)
		if at < 0 {
			return set, made, refuse(http.StatusUnprocessableEntity,
				"%s rule %q was not loaded by code: change it in its source", shortened(r.Kind), shortened(r.ID))
		}
		lists[r.Kind], ids[r.Kind] = slices.Delete(lists[r.Kind], at, at+1), slices.Delete(ids[r.Kind], at, at+1)
	}
	for kind, list := range lists {
		if len(list) == 0 {
			delete(lists, kind)
		}
	}
	if len(lists) > 0 {
		text, err := json.Marshal(lists)
		if err != nil {
			return set, made, err
		}
		if err := set.UnmarshalJSON(text); err != nil {
			return set, made, err
		}
	}
	diff := rules.Diff(loaded, set)
	if diff.Empty() {
		return set, made, refuse(http.StatusUnprocessableEntity, "nothing would change")
	}
	before, err := loaded.MarshalJSON()
	if err != nil {
		return set, made, err
	}
	after, err := set.MarshalJSON()
	if err != nil {
		return set, made, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%s\n%s", len(before), before, after))
	return set, change{diff.String(), diff.Text(), hex.EncodeToString(sum[:]), diff.Lines()}, nil
}

// put replaces rules with the same IDs, and adds others at the end. It first checks the new rules
// by themselves, so that errors refer to the request.
func (e edit) put(lists map[string][]json.RawMessage, ids map[string][]string) error {
	var set api.RuleSet
	if err := set.UnmarshalJSON(e.Rules); err != nil {
		return err
	}
	sent, err := listsOf(set)
	if err != nil {
		return err
	}
	next := make(map[string]int)
	for _, r := range rules.Diff(api.RuleSet{}, set).Added {
		text := sent[r.Family][next[r.Family]]
		next[r.Family]++
		if at := slices.Index(ids[r.Family], r.ID); at >= 0 {
			lists[r.Family][at] = text
		} else {
			lists[r.Family], ids[r.Family] = append(lists[r.Family], text), append(ids[r.Family], r.ID)
		}
	}
	return nil
}
