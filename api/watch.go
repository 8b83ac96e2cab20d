package api

import (
	"context"

	"github.com/penstock-go/penstock/rules"
)

// WatchRules declares rule files, and directories of rule files, as sources of the rules: it loads
// all of them now, and again whenever one changes, until ctx ends or the Guard is closed. The first
// load must succeed as a whole; if a file is missing, empty or wrong later, that is logged, and its
// last good rules stay in force. The rules of a watch that has ended stay in force until the next
// load of any source, which leaves them out.
//
// The rules of all sources are in force together: the rules of several calls of WatchRules, and the
// rules loaded by [Guard.LoadRules]. They are combined in the order in which the sources were
// declared, and put into force by one swap. If two of them have the same id, that is an error that
// names both, and the source with the second one keeps its previous rules; see
// [Guard.AllowOverrides]. Declaring a source a second time is a [*SourceError].
//
// In a directory, the files whose names end in .yaml, .yml or .json are read, in the order of their
// names. They may be added and removed; [rules.Loader.Watch] has the details.
//
// In a bubble of testing/synctest on Linux WatchRules doesn't return: its goroutine that waits for
// the system's notice of a change is never durably blocked, so the bubble's clock stands still, and
// the time for which a file must be unchanged before it is read never passes. Use
// [Guard.LoadRulesFile] there, which starts no goroutine.
func (g *Guard) WatchRules(ctx context.Context, paths ...string) error {
	return g.loader.Watch(ctx, paths...)
}

// WatchSource declares a running store as a source of the rules, such as one of package
// rules/sources/httpsource: it loads the rules now, and again whenever they change, until ctx ends
// or the Guard is closed. They are combined with those of all other sources, as [Guard.WatchRules]
// describes.
//
// While the store is unreachable, or its document is missing, empty or wrong, its last good rules
// stay in force. At the start it has 5 s to reply; after that, the rules of the Cache file are used,
// if there are any. See [rules.Loader.WatchSource].
func (g *Guard) WatchSource(ctx context.Context, source rules.Source, opts SourceOptions) error {
	return g.loader.WatchSource(ctx, source, opts)
}

// OnReload calls f with every outcome of the sources that are declared from now on, including that
// of their first load; see [rules.Loader.OnReload]. There is one listener: the latest. nil, as
// initially, is none.
func (g *Guard) OnReload(f func(Reload)) { g.loader.OnReload(f) }

// AllowOverrides makes the later source win, from the next load on, when two rules have the same
// id, which would otherwise be an error. So a file for one service can replace rules of a file for
// all. See [rules.Loader.AllowOverrides].
func (g *Guard) AllowOverrides() { g.loader.AllowOverrides() }

// Status returns the state of all sources of the rules together and, in Sources, of each. It is
// zero if there are none.
func (g *Guard) Status() Status { return g.loader.Status() }

// Revisions returns the last states of the rules, oldest first: the last one is in force. There are
// up to [rules.MaxRevisions].
func (g *Guard) Revisions() []Revision { return g.loader.Revisions() }
