package rules

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// member is a declared source: a watch of files and directories, or code.
type member struct {
	loader   *Loader
	number   int // members are in this order
	ctx      context.Context
	end      context.CancelFunc
	listener func(Reload)
	names    []string // no other member may have the same

	// Guarded by the Loader, like its own fields.
	begun   bool
	watched bool // a goroutine runs for it
	polling bool // guarded by mu alone
	pieces  []*piece
}

// gone reports whether the member has ended.
func (m *member) gone() bool { return m.ctx.Err() != nil }

// pieceName distinguishes and orders the pieces of a member.
type pieceName struct {
	order int // of the path that it is from
	name  string
}

func (n pieceName) compare(o pieceName) int {
	return cmp.Or(cmp.Compare(n.order, o.order), cmp.Compare(n.name, o.name))
}

// piece is a unit with rules, such as a file. A directory is a piece without rules.
type piece struct {
	pieceName
	member   *member
	wanted   *content  // its latest content, or nil if it has none or it is unknown
	good     *content  // its content in force
	left     bool      // its file was removed from the directory
	yields   bool      // to a source with its name
	dir      bool      // it is a directory
	taken    time.Time // time of the last read
	heard    news      // of the last read
	accepted news      // of the read that set wanted
	status   Status
}

// news is the current content of a piece, or the reason why it is unknown.
type news struct {
	pieceName
	taken  time.Time
	hash   hash
	parsed Parsed
	places places
	dir    bool  // it is a directory
	left   bool  // the file has left its directory
	err    error // of reading or parsing

	revision string    // the source's name of the content
	cached   time.Time // when it was written to the cache that it is from, or zero
}

// join declares a source whose pieces have these names. The caller must call leave.
func (l *Loader) join(ctx context.Context, names []string) (*member, error) {
	l.loading.Lock()
	defer l.loading.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	for i, name := range names {
		if name == codeName {
			return nil, errCodeName
		}
		if slices.Contains(names[:i], name) {
			return nil, &SourceError{name}
		}
		for _, m := range l.members {
			if !m.gone() && slices.Contains(m.names, name) {
				return nil, &SourceError{name}
			}
		}
	}
	m := l.newMemberLocked(ctx)
	m.names, m.listener, m.watched = names, l.listener, true
	l.running.Add(1)
	return m, nil
}

// newMemberLocked adds a member. The caller holds both locks.
func (l *Loader) newMemberLocked(ctx context.Context) *member {
	l.joined++
	m := &member{loader: l, number: l.joined}
	m.ctx, m.end = context.WithCancel(ctx)
	l.members = append(l.members, m)
	return m
}

// leave ends the member. Its goroutines must have ended.
func (m *member) leave() {
	m.end()
	l := m.loader
	l.loading.Lock()
	l.mu.Lock()
	m.watched = false
	if !m.begun {
		l.members = slices.DeleteFunc(l.members, func(o *member) bool { return o == m })
	}
	l.mu.Unlock()
	l.loading.Unlock()
	l.running.Done()
}

// begin loads a member for the first time: all of it or nothing. Without any content the member
// contributes nothing yet.
func (m *member) begin(all ...news) error {
	l := m.loader
	var errs []error
	for _, n := range all {
		if n.err != nil {
			errs = append(errs, n.err)
		}
	}
	if err := joined(errs); err != nil {
		return err
	}
	if len(all) == 0 { // there is nothing to swap
		l.loading.Lock()
		defer l.loading.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		m.begun = true
		return m.ctx.Err()
	}
	reports, err := func() ([]report, error) {
		l.loading.Lock()
		defer l.loading.Unlock()
		if err := m.ctx.Err(); err != nil {
			return nil, err
		}
		for _, n := range all {
			m.hear(n)
		}
		reports, err := l.loadLocked(m.pieces, true, l.survivingApply)
		l.mu.Lock()
		defer l.mu.Unlock()
		if m.begun = err == nil; err != nil {
			m.pieces = nil
		}
		return reports, err
	}()
	l.tell(reports)
	return err
}

// take processes changes of the member after its first load. It returns an error if they are not in
// force.
func (m *member) take(all ...news) error {
	l := m.loader
	l.loading.Lock()
	if m.gone() {
		l.loading.Unlock()
		return m.ctx.Err()
	}
	var errs []error
	var fresh []*piece
	var reports []report
	for _, n := range all {
		p := m.hear(n)
		if n.err == nil {
			fresh = append(fresh, p)
		} else {
			errs = append(errs, n.err)
			reports = append(reports, l.refuse(p, n.err))
		}
	}
	if len(fresh) > 0 {
		more, err := l.loadLocked(fresh, false, l.survivingApply)
		if reports = append(reports, more...); err != nil {
			errs = append(errs, err)
		}
	}
	l.loading.Unlock()
	l.tell(reports)
	return joined(errs)
}

// holds reports whether the content of a piece in force has that hash.
func (m *member) holds(name pieceName, h hash) bool {
	m.loader.mu.Lock()
	defer m.loader.mu.Unlock()
	return slices.ContainsFunc(m.pieces, func(p *piece) bool {
		return p.pieceName == name && p.good != nil && p.good.hash == h
	})
}

// confirm records that a piece still has the same content, under this revision.
func (m *member) confirm(name pieceName, revision string) {
	m.loader.mu.Lock()
	defer m.loader.mu.Unlock()
	for _, p := range m.pieces {
		if s := &p.status; p.pieceName == name && s.OK { // it is in force
			s.Revision, s.Confirmed = revision, time.Now()
		}
	}
}

// hear records the content of a piece that has nothing in force yet.
func (m *member) hear(n news) *piece {
	l := m.loader
	l.mu.Lock()
	defer l.mu.Unlock()
	i, known := slices.BinarySearchFunc(m.pieces, n.pieceName, func(p *piece, n pieceName) int { return p.compare(n) })
	if !known {
		p := &piece{pieceName: n.pieceName, member: m, dir: n.dir, status: Status{Source: n.name}}
		m.pieces = slices.Insert(m.pieces, i, p)
	}
	p := m.pieces[i]
	p.taken = n.taken
	p.heard = news{hash: n.hash, revision: n.revision, cached: n.cached}
	if n.err != nil {
		return p
	}
	p.accepted, p.left, p.wanted = p.heard, n.left, nil
	if !n.left && n.hash != (hash{}) {
		p.wanted = l.known(n.name, n.hash, func() *content { return &content{parsed: n.parsed, places: n.places, hash: n.hash} })
	}
	return p
}

// known returns the content for a name and a hash: the remembered one, so that restored content takes
// no extra memory, or otherwise a new one.
func (l *Loader) known(name string, h hash, or func() *content) *content {
	for _, k := range l.history {
		for _, p := range k.pieces {
			if p.name == name && p.content.hash == h {
				return p.content
			}
		}
	}
	return or()
}
