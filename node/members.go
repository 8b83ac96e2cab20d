package node

import "github.com/penstock-go/penstock/internal/shared"

// members are a registry's by name. Most registries have one, the single context of a
// resource; a map for that would be larger than its node. Changes need the registry's
// lock, and a name is in one of the two places at a time: so who looks first here and
// then there finds it, or it was absent in between.
type members[V any] struct {
	one  shared.Pointer[named[V]]
	rest shared.Pointer[shared.Map] // string -> V; made for the second name
}

type named[V any] struct {
	name string
	v    V
}

func (m *members[V]) load(name string) (v V, ok bool) {
	if one := m.one.Load(); one != nil && one.name == name {
		return one.v, true
	}
	if rest := m.rest.Load(); rest != nil {
		if found, ok := rest.Load(name); ok {
			return found.(V), true
		}
	}
	return v, false
}

// store puts a name in that is not there.
func (m *members[V]) store(name string, v V) {
	rest := m.rest.Load()
	switch {
	case rest != nil:
		rest.Store(name, v)
	case m.one.Load() == nil:
		m.one.Store(&named[V]{name, v})
	default:
		rest = new(shared.Map)
		rest.Store(name, v)
		m.rest.Store(rest)
	}
}

func (m *members[V]) delete(name string) {
	if one := m.one.Load(); one != nil && one.name == name {
		m.one.Store(nil)
		return
	}
	if rest := m.rest.Load(); rest != nil {
		rest.Delete(name)
	}
}

func (m *members[V]) each(yield func(name string, v V) bool) {
	if one := m.one.Load(); one != nil && !yield(one.name, one.v) {
		return
	}
	if rest := m.rest.Load(); rest != nil {
		rest.Range(func(name, v any) bool { return yield(name.(string), v.(V)) })
	}
}
