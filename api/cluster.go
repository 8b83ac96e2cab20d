package api

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/rules"
)

// membership is a Guard's membership in a cluster; nil means none. It lasts as long as rules that
// share limits there are in force, or calls hold permits of such limits.
type membership struct {
	at     rules.Cluster
	member *sharing.Member
	store  io.Closer // of a store that the Guard opened, otherwise nil
	end    sync.Once
}

// join returns the membership that a rule set needs: the current one, if it matches.
func (g *Guard) join(set RuleSet) (*membership, error) {
	has, left := g.share()
	switch {
	case left:
		return has, nil
	case !set.Shared():
		return nil, nil
	}
	var at rules.Cluster
	if len(set.Cluster) > 0 {
		at = set.Cluster[0]
	}
	if has != nil && has.at == at {
		return has, nil
	}
	m := &membership{at: at}
	config := g.config.Cluster
	switch {
	case at.Redis != "" && config.Store != nil:
		return nil, fmt.Errorf("cluster.%w", spec.BadField("redis", "conflicts with the store in api.Config.Cluster: remove one of them"))
	case at.Redis != "":
		store, err := g.open(at.Redis)
		if err != nil {
			return nil, fmt.Errorf("cluster.%w", err)
		}
		config.Store = store
		if s, ok := store.(interface{ LogTo(*slog.Logger) }); ok {
			s.LogTo(g.engine.Logger())
		}
		m.store, _ = store.(io.Closer)
	case config.Store == nil:
		return nil, nil // the first rule that needs a store reports it
	}
	config.Namespace, config.Members = cmp.Or(at.Namespace, config.Namespace), cmp.Or(at.Members, config.Members)
	if config.Clock == nil {
		config.Clock = g.config.Clock
	}
	config.Logger = cmp.Or(config.Logger, g.engine.Logger())
	member, err := sharing.Join(config)
	if err != nil {
		m.leave()
		return nil, err
	}
	m.member = member
	return m, nil
}

// leave ends the membership.
func (m *membership) leave() {
	if m == nil {
		return
	}
	m.end.Do(func() {
		if m.member != nil {
			m.member.Close()
		}
		if m.store != nil {
			closing(m.store)
		}
	})
}

// closing closes a store that is no longer needed. It runs the user's code, and may run on a timer.
func closing(store io.Closer) {
	defer func() { _ = recover() }()
	_ = store.Close()
}

// retire ends a membership once no call holds permits of it. Until then these permits count as
// taken in the whole cluster, including the next membership of this Guard.
func (g *Guard) retire(m *membership) {
	if m == nil {
		return
	}
	g.sharing.Lock()
	left := g.left
	if !left {
		if g.retiring == nil {
			g.retiring = map[*membership]bool{}
		}
		g.retiring[m] = true
	}
	g.sharing.Unlock()
	if left {
		m.leave()
		return
	}
	m.member.Retire(func() {
		m.leave()
		g.sharing.Lock()
		delete(g.retiring, m)
		g.sharing.Unlock()
	})
}

// share returns the membership, and whether the Guard has left permanently.
func (g *Guard) share() (m *membership, left bool) {
	g.sharing.Lock()
	defer g.sharing.Unlock()
	return g.membership, g.left
}

// leave ends the memberships of the Guard permanently. Rules in force fall back to onFailure, as
// with an unreachable store.
func (g *Guard) leave() {
	g.sharing.Lock()
	g.left = true
	all := slices.Collect(maps.Keys(g.retiring))
	all = append(all, g.membership)
	g.sharing.Unlock()
	for _, m := range all {
		m.leave()
	}
}

// of returns the member, or nil if there is none.
func (m *membership) of() *sharing.Member {
	if m == nil {
		return nil
	}
	return m.member
}

// open opens the store at a URL.
func (g *Guard) open(text string) (store.Store, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, spec.BadField("redis", "is not a valid URL")
	}
	stores := g.config.Stores
	open := stores[u.Scheme]
	if open == nil {
		return nil, spec.BadField("redis", "has the scheme %q, which no configured store handles: %s", u.Scheme+"://", schemes(stores))
	}
	if password, ok := u.User.Password(); ok && strings.HasPrefix(password, "$") {
		secret, ok := os.LookupEnv(password[1:])
		if !ok {
			return nil, spec.BadField("redis", "names the environment variable %s, which is not set", password[1:])
		}
		u.User = url.UserPassword(u.User.Username(), secret)
	}
	store, err := open(u.String())
	if err != nil {
		return nil, spec.BadField("redis", "can't be opened: %v", err)
	}
	return store, nil
}

// schemes describes the schemes that can be opened.
func schemes(stores map[string]func(string) (store.Store, error)) string {
	if len(stores) == 0 {
		return "add one to api.Config.Stores, such as that of package cluster/redis"
	}
	var all []string
	for scheme := range stores {
		all = append(all, scheme+"://")
	}
	slices.Sort(all)
	return "api.Config.Stores has " + strings.Join(all, ", ")
}
