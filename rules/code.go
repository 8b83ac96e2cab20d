package rules

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// codeName is the source name of rules that come from code.
const codeName = "code"

var errCodeName = fmt.Errorf("penstock: the source name %q is reserved for rules that the program loads itself: use another name or, for a file, the path ./%[1]s", codeName)

// Load replaces the rules loaded by code with a Set, or changes nothing if the Set can't be in force
// together with the rules of the other sources. All rules loaded by code are one source, called
// "code", which is ordered among the others by its first load; an empty Set removes the source.
func (l *Loader) Load(set Set) error {
	if !set.says() {
		return l.loadCode(codeName, false, nil)
	}
	return l.loadCode(codeName, false, contentOf(set.Clone()))
}

// LoadFile is like Load, but reads the rules from a file, whose path becomes the name of the source.
// A watch of that file replaces it; while a watch has another version in force, LoadFile returns a
// [*SourceError].
func (l *Loader) LoadFile(path string) (Parsed, error) {
	data, _, err := readFile(path, MaxFileSize, l.trust())
	if err != nil {
		return Parsed{}, err
	}
	parsed, at, err := parse(path, data, ParseOptions{})
	if err != nil {
		return Parsed{}, err
	}
	return parsed, l.loadCode(path, true, &content{parsed: parsed, places: at, hash: hashOf(data)})
}

// Edit loads the result of edit, which gets a copy of the rules loaded by code, including those of a
// file that was loaded once. If edit fails, Edit returns its error and changes nothing. No source
// loads while edit runs; so edit can read the rules in force, but must not load rules or declare a
// source itself.
func (l *Loader) Edit(edit func(Set) (Set, error)) error {
	reports, err := l.editCode(edit)
	l.tell(reports)
	return err
}

func (l *Loader) editCode(edit func(Set) (Set, error)) ([]report, error) {
	l.loading.Lock()
	defer l.loading.Unlock()
	l.mu.Lock()
	var loaded Set
	if m := l.codeLocked(); m != nil && len(m.pieces) > 0 {
		loaded = setOf(m.pieces[0].good).Clone()
	}
	l.mu.Unlock()
	set, err := edit(loaded)
	if err != nil {
		return nil, err
	}
	var c *content
	if set.says() {
		c = contentOf(set.Clone())
	}
	return l.loadingCodeLocked(codeName, false, c)
}

func (l *Loader) loadCode(name string, yields bool, c *content) error {
	reports, err := l.tryCode(name, yields, c)
	l.tell(reports)
	return err
}

func (l *Loader) tryCode(name string, yields bool, c *content) ([]report, error) {
	l.loading.Lock()
	defer l.loading.Unlock()
	return l.loadingCodeLocked(name, yields, c)
}

// codeLocked returns the member for code, or nil if code has no rules.
func (l *Loader) codeLocked() *member {
	i := slices.IndexFunc(l.members, func(m *member) bool { return !m.watched && m.names == nil })
	if i < 0 {
		return nil
	}
	return l.members[i]
}

// loadingCodeLocked makes c the rules of code. The caller holds loading.
func (l *Loader) loadingCodeLocked(name string, yields bool, c *content) (reports []report, err error) {
	l.mu.Lock()
	if yields && l.watchedOtherwise(name, c) { // it would not be in force
		l.mu.Unlock()
		return nil, &SourceError{name}
	}
	m := l.codeLocked()
	if m == nil {
		m = l.newMemberLocked(context.Background())
	}
	before := m.pieces
	p := &piece{member: m, pieceName: pieceName{name: name}, yields: yields, taken: time.Now()}
	if c != nil {
		p.wanted = l.known(name, c.hash, func() *content { return c })
	}
	if len(before) > 0 {
		p.good, p.status = before[0].good, before[0].status
	}
	p.status.Source = name
	m.pieces = []*piece{p}
	l.mu.Unlock()
	loaded := false
	defer func() { // after an error, a panic of apply, or the end of the goroutine
		if loaded {
			return
		}
		l.mu.Lock()
		m.pieces = before
		l.mu.Unlock()
	}()
	reports, err = l.loadLocked(m.pieces, true, l.apply)
	if loaded = err == nil; loaded {
		l.mu.Lock()
		m.begun = true
		l.mu.Unlock()
	}
	return reports, err
}

// watchedOtherwise reports whether a file is watched and has content other than c in force.
func (l *Loader) watchedOtherwise(name string, c *content) bool {
	return slices.ContainsFunc(l.members, func(m *member) bool {
		return m.names != nil && !m.gone() && slices.ContainsFunc(m.pieces, func(p *piece) bool {
			return p.name == name && !p.left && !same(p.good, c)
		})
	})
}
