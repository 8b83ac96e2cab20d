package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Loader combines what several sources say into one Set, and puts that in force by one swap. A
// source is a file, a directory of files, or rules that code loads. Each has a name, and its
// place is that in which it was declared. A Guard of package api has a Loader; one by itself is
// for programs that put rules in force in their own way. Make it with [NewLoader]. Its
// methods are safe for concurrent use.
//
// What holds, whatever is loaded at the same time:
//
//   - What is in force combines the last good rules of each source, the last swap of all
//     the sources included. A source that is missing or wrong, or conflicts with the others,
//     keeps what it had, and the others go on.
//   - Rules of a source that could not come into force, because of such a conflict, are tried
//     again whenever another source changes: the mistake may be fixed in either.
//   - A source whose context has ended says nothing more, from that instant on. What it said last
//     stays in force until the next swap, which leaves it out.
//   - What is reported as loaded is in force.
//
// This is why: loads run one after the other, under the lock `loading`, and each looks under it
// whether the context of its source has ended. So code that ends a source and then loads comes
// after it: what the source still finds comes too late. It does not wait until the source has
// noticed its end, since a listener may end the source that tells it. A load works out what each
// source is to say, has the combination applied, and only if that succeeds is anything written
// down; the outcome is told after, outside the lock. So a listener may load, declare sources and
// roll back; only [Loader.Close] waits for it.
type Loader struct {
	apply func(Set) error
	log   *slog.Logger

	loading sync.Mutex // one load at a time
	mu      sync.Mutex // never held while anything of the user's runs

	// These, and what they hold, change under both locks, and are read under either.
	members []*member
	joined  int    // members so far
	set     Set    // in force
	history []kept // the newest is the last
	number  uint64 // of the newest
	over    []Override

	// These are guarded by mu.
	listener  func(Reload)
	inspector func(Parsed)
	laterWins bool
	closed    bool

	running sync.WaitGroup // sources, and who tells listeners of them; none begins once it is closed
}

// NewLoader returns a Loader without sources. apply puts a Set in force, or says why not; it
// gets one at a time, and must not change what is in it. The log gets a line for every outcome
// of a source; nil is [slog.Default].
func NewLoader(apply func(Set) error, log *slog.Logger) *Loader {
	return &Loader{apply: apply, log: log}
}

// SourceError says that a source was not declared because there is already one of its name.
type SourceError struct {
	Source string // its name
}

// Error names the source.
func (e *SourceError) Error() string {
	return fmt.Sprintf("penstock: %q is a source of the rules already; end the context that it was declared with first", e.Source)
}

var errClosed = errors.New("penstock: closed, and watches nothing any more")

// member is a source that was declared: a watch of files and directories, or code.
type member struct {
	loader   *Loader
	number   int // members are in this order
	ctx      context.Context
	end      context.CancelFunc
	listener func(Reload)
	names    []string // that nobody else may have
	kept     bool     // it is no more, and its rules came back by a Rollback

	// These are the Loader's to guard, as its own.
	begun   bool
	watched bool // something runs for it
	polling bool // guarded by mu alone
	pieces  []*piece
}

// gone reports whether the member has no say any more.
func (m *member) gone() bool { return m.ctx.Err() != nil }

// pieceName is what tells pieces of a member apart, and their order.
type pieceName struct {
	order int // of the path that it comes from
	name  string
}

func (n pieceName) compare(o pieceName) int {
	return cmp.Or(cmp.Compare(n.order, o.order), cmp.Compare(n.name, o.name))
}

// piece is what has rules: a file, say. A directory is a piece without any.
type piece struct {
	pieceName
	member *member
	wanted *content  // what it says; nil if that is nothing, or nothing is known yet
	good   *content  // what is in force of it
	pinned bool      // good is what Rollback made it, until it has news
	left   bool      // its file has left the directory
	yields bool      // to a source with its name
	dir    bool      // it is a directory
	taken  time.Time // when it was last looked at
	heard  news      // then
	said   news      // when wanted was
	status Status
}

// next is what the piece is to say in the next combination.
func (p *piece) next() *content {
	if p.pinned {
		return p.good
	}
	return p.wanted
}

// news is what a piece says now, or why that is not known.
type news struct {
	pieceName
	taken  time.Time
	hash   hash
	parsed Parsed
	places places
	dir    bool  // it is a directory
	left   bool  // the file has left its directory
	err    error // of reading or parsing

	revision string    // what the source calls what it says
	cached   time.Time // when it was written to the cache that it is from, or zero
}

// join declares a source whose pieces have these names. Whoever declares it has to call leave.
func (l *Loader) join(ctx context.Context, names []string) (*member, error) {
	l.loading.Lock()
	defer l.loading.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, &SourceError{name}
		}
		for _, m := range l.members {
			if !m.gone() && slices.Contains(m.names, name) {
				return nil, &SourceError{name}
			}
		}
	}
	m := l.newMember(ctx)
	m.names, m.listener, m.watched = names, l.listener, true
	l.running.Add(1)
	return m, nil
}

// newMember adds a member. The caller holds both locks.
func (l *Loader) newMember(ctx context.Context) *member {
	l.joined++
	m := &member{loader: l, number: l.joined}
	m.ctx, m.end = context.WithCancel(ctx)
	l.members = append(l.members, m)
	return m
}

// leave ends the member; nothing of it runs any more.
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

// begin is the first load of a member: all of it or nothing. Without any news it says nothing
// yet.
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
		reports, err := l.load(m.pieces, true, l.survivingApply)
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

// take is what the member says after its first load. It returns why that is not in force, if it
// is not. What a Rollback keeps out, since the source says what it said then, is no error.
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
		more, err := l.load(fresh, false, l.survivingApply)
		if reports = append(reports, more...); err != nil {
			errs = append(errs, err)
		}
	}
	l.loading.Unlock()
	l.tell(reports)
	return joined(errs)
}

// holds reports whether what is in force of a piece is the content of a hash.
func (m *member) holds(name pieceName, h hash) bool {
	m.loader.mu.Lock()
	defer m.loader.mu.Unlock()
	return slices.ContainsFunc(m.pieces, func(p *piece) bool {
		return p.pieceName == name && p.good != nil && p.good.hash == h
	})
}

// confirm notes that a piece was seen to say, under this revision, what it said last.
func (m *member) confirm(name pieceName, revision string) {
	m.loader.mu.Lock()
	defer m.loader.mu.Unlock()
	for _, p := range m.pieces {
		if s := &p.status; p.pieceName == name && s.OK && !p.pinned { // it is in force
			s.Revision, s.Confirmed = revision, time.Now()
		}
	}
}

// hear notes what a piece says, of which nothing is in force yet.
func (m *member) hear(n news) *piece {
	l := m.loader
	l.mu.Lock()
	defer l.mu.Unlock()
	i, known := slices.BinarySearchFunc(m.pieces, n.pieceName, func(p *piece, n pieceName) int { return p.compare(n) })
	if !known {
		p := &piece{pieceName: n.pieceName, member: m, dir: n.dir, status: Status{Source: n.name}}
		for _, o := range l.members { // it goes on from what a Rollback has brought back
			for _, q := range o.pieces {
				if o.kept && q.name == n.name {
					p.good, p.wanted, p.pinned = q.good, q.good, true
				}
			}
		}
		m.pieces = slices.Insert(m.pieces, i, p)
	}
	p := m.pieces[i]
	p.taken = n.taken
	p.heard = news{hash: n.hash, revision: n.revision, cached: n.cached}
	if n.err != nil {
		return p
	}
	again := !n.left && p.wanted != nil && p.wanted.hash == n.hash // which is no news
	p.pinned = p.pinned && again && !same(p.wanted, p.good)
	p.said, p.left, p.wanted = p.heard, n.left, nil
	if !n.left && n.hash != (hash{}) {
		p.wanted = l.known(n.name, n.hash, func() *content { return &content{parsed: n.parsed, places: n.places, hash: n.hash} })
	}
	return p
}

// known is the content of a name and a hash: the one that is remembered, so that what comes
// back takes no memory of its own, or else a new one.
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

// codeName is what rules are told by that come from code.
const codeName = "code"

// Load makes a Set the rules that code says, in the place of those it said before, and changes
// nothing if it can't be put in force with the rules of the other sources. All that code loads is
// one source, called "code", whose place among the others is that of its first load; an empty Set
// is none.
func (l *Loader) Load(set Set) error {
	if !set.says() {
		return l.loadCode(codeName, false, nil)
	}
	return l.loadCode(codeName, false, contentOf(set.Clone()))
}

// LoadFile is Load with the rules of a file, whose path is then the name of the source. A watch
// of that file takes its place; while there is one that has something else in force, LoadFile
// returns a [*SourceError].
func (l *Loader) LoadFile(path string) (Parsed, error) {
	data, _, err := readFile(path, MaxFileSize)
	if err != nil {
		return Parsed{}, err
	}
	parsed, at, err := parse(path, data, ParseOptions{})
	if err != nil {
		return Parsed{}, err
	}
	return parsed, l.loadCode(path, true, &content{parsed: parsed, places: at, hash: hashOf(data)})
}

// Edit is Load with what edit makes of the rules that code has loaded, including those of a file
// that was loaded once. An error of edit is returned as it is, and nothing has changed then. No
// source loads anything while edit runs; so it can look at what is in force, and must not load,
// or declare a source, itself. The Set that it gets is its own.
func (l *Loader) Edit(edit func(Set) (Set, error)) error {
	reports, err := l.editCode(edit)
	l.tell(reports)
	return err
}

func (l *Loader) editCode(edit func(Set) (Set, error)) ([]report, error) {
	l.loading.Lock()
	defer l.loading.Unlock()
	l.mu.Lock()
	var said Set
	if m := l.code(); m != nil && len(m.pieces) > 0 {
		said = setOf(m.pieces[0].good).Clone()
	}
	l.mu.Unlock()
	set, err := edit(said)
	if err != nil {
		return nil, err
	}
	var c *content
	if set.says() {
		c = contentOf(set.Clone())
	}
	return l.loadingCode(codeName, false, c)
}

func (l *Loader) loadCode(name string, yields bool, c *content) error {
	reports, err := l.tryCode(name, yields, c)
	l.tell(reports)
	return err
}

func (l *Loader) tryCode(name string, yields bool, c *content) ([]report, error) {
	l.loading.Lock()
	defer l.loading.Unlock()
	return l.loadingCode(name, yields, c)
}

// code is the member that is code, nil if code says nothing. The caller holds a lock.
func (l *Loader) code() *member {
	i := slices.IndexFunc(l.members, func(m *member) bool { return !m.watched && m.names == nil && !m.kept })
	if i < 0 {
		return nil
	}
	return l.members[i]
}

// loadingCode makes c what code says. The caller holds loading.
func (l *Loader) loadingCode(name string, yields bool, c *content) (reports []report, err error) {
	l.mu.Lock()
	if yields && l.watchedOtherwise(name, c) { // it would not be in force
		l.mu.Unlock()
		return nil, &SourceError{name}
	}
	m := l.code()
	if m == nil {
		m = l.newMember(context.Background())
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
	defer func() { // in an error, a panic of what applies, or the end of the goroutine
		if loaded {
			return
		}
		l.mu.Lock()
		m.pieces = before
		l.mu.Unlock()
	}()
	reports, err = l.load(m.pieces, true, l.apply)
	if loaded = err == nil; loaded {
		l.mu.Lock()
		m.begun = true
		l.mu.Unlock()
	}
	return reports, err
}

// watchedOtherwise reports whether a file is watched, and something else than c is in force of it.
func (l *Loader) watchedOtherwise(name string, c *content) bool {
	return slices.ContainsFunc(l.members, func(m *member) bool {
		return m.names != nil && !m.gone() && slices.ContainsFunc(m.pieces, func(p *piece) bool {
			return p.name == name && !p.left && !same(p.good, c)
		})
	})
}

// LaterWins declares that from the next load on two sources may have rules with one ID: the rule
// of the later source is in force, in its place, and the other is not. Each such rule is reported
// in [Reload].Overrides, [Status].Overrides and the log. Without it, an ID in two sources is an
// error that names both.
func (l *Loader) LaterWins() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.laterWins = true
}

// OnReload has f told of every outcome of the sources that are declared from now on, that of
// their first load included. There is one listener: the latest. nil, the initial value, is none.
// Each source tells one outcome at a time, and several sources may tell theirs at the same time.
func (l *Loader) OnReload(f func(Reload)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener = f
}

// OnLoaded has f look at the rules of each source that come into force from now on, before
// listeners are told. nil, the initial value, is nobody. f may be called by several goroutines at
// the same time.
func (l *Loader) OnLoaded(f func(Parsed)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inspector = f
}

// Close ends all sources but code. When it returns, nothing of them runs, and nobody is told
// anything any more; so a listener that calls it waits for itself forever. The rules stay in
// force, and code may load others. Closing twice is fine.
func (l *Loader) Close() {
	l.mu.Lock()
	l.closed = true
	for _, m := range l.members {
		if m.watched {
			m.end()
		}
	}
	l.mu.Unlock()
	l.running.Wait()
}

// survivingApply is apply, to which a panic is an error like any other: a watch must outlive it,
// and with it the program.
func (l *Loader) survivingApply(set Set) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return l.apply(set)
}
