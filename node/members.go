package node

import "github.com/penstock-go/penstock/internal/shared"

// members holds a registry's members by name. Most registries have one, the single context of a
// resource; a table for it would be larger than its node. Changes need the registry's lock, lookups
// don't. A name is in either first or rest, never in both: so a reader that looks in first and then
// in rest finds it, or it was absent in between.
type members[T any, V Member[T]] struct {
	one  shared.Pointer[T]
	rest shared.Pointer[hashTable[T]] // made for the second member
}

func (m *members[T, V]) load(name string) (V, bool) {
	if one := m.one.Load(); one != nil && V(one).Key() == name {
		return one, true
	}
	if rest := m.rest.Load(); rest != nil {
		return find[T, V](rest, name)
	}
	return nil, false
}

// store adds a member whose name is not present.
func (m *members[T, V]) store(v V) {
	rest := m.rest.Load()
	switch {
	case rest != nil:
	case m.one.Load() == nil:
		m.one.Store(v)
		return
	default:
		rest = newHashTable[T](0)
	}
	if 4*(rest.used+1) > 3*len(rest.slots) {
		rest = rest.copied()
	}
	rest.store(shared.Hash(v.Key()), v)
	m.rest.Store(rest)
}

func (m *members[T, V]) delete(name string) {
	if one := m.one.Load(); one != nil && V(one).Key() == name {
		m.one.Store(nil)
		return
	}
	if rest := m.rest.Load(); rest != nil && remove[T, V](rest, name) && 8*rest.live < len(rest.slots) && len(rest.slots) > minSlots {
		m.rest.Store(rest.copied())
	}
}

// each yields the members. Of members added or removed during the iteration it yields some, but
// none twice.
func (m *members[T, V]) each(yield func(name string, v V) bool) {
	one := m.one.Load()
	if one != nil && !yield(V(one).Key(), one) {
		return
	}
	rest := m.rest.Load()
	if rest == nil {
		return
	}
	for i := range rest.slots {
		if v := rest.slots[i].member.Load(); v != nil && v != one && !yield(V(v).Key(), v) {
			return
		}
	}
}

// hashTable finds members by name: a hash table with linear probing, at most three quarters used. A
// lookup touches a slot, the member and its name, which costs as much as in a large map when none
// of it is cached.
//
// A slot gets a hash once and keeps it, so that probing never meets a gap: removing a member clears
// only its pointer, and the same member finds the slot again later. When too few slots are free, or
// too many members were removed, the remaining ones are copied to a new table. A reader of the old
// one finds the members that were there when it began.
type hashTable[T any] struct {
	slots []slot[T] // a power of two
	used  int       // slots that have a hash
	live  int       // slots that have a member
}

type slot[T any] struct {
	hash   shared.Uint64 // 0 if the slot is free; stored after the member
	member shared.Pointer[T]
}

// minSlots is the minimum number of slots of a table.
const minSlots = 4

// newHashTable returns a table with room for twice that many members.
func newHashTable[T any](members int) *hashTable[T] {
	size := minSlots
	for size < 2*members {
		size *= 2
	}
	return &hashTable[T]{slots: make([]slot[T], size)}
}

func find[T any, V Member[T]](t *hashTable[T], name string) (V, bool) {
	_, v := locate[T, V](t, shared.Hash(name), name)
	return v, v != nil
}

// locate returns the member of that name and its slot.
func locate[T any, V Member[T]](t *hashTable[T], hash uint64, name string) (*slot[T], V) {
	for i := t.home(hash); ; i = t.after(i) {
		s := &t.slots[i]
		switch s.hash.Load() {
		case 0:
			return nil, nil
		case taken(hash):
			if v := V(s.member.Load()); v != nil && v.Key() == name {
				return s, v
			}
		}
	}
}

func remove[T any, V Member[T]](t *hashTable[T], name string) bool {
	s, _ := locate[T, V](t, shared.Hash(name), name)
	if s == nil {
		return false
	}
	s.member.Store(nil)
	t.live--
	return true
}

// store puts a member in the slot of a removed member with the same hash, or in a free one.
func (t *hashTable[T]) store(hash uint64, v *T) {
	i := t.home(hash)
	for ; t.slots[i].hash.Load() != 0; i = t.after(i) {
		if t.slots[i].hash.Load() == taken(hash) && t.slots[i].member.Load() == nil {
			break
		}
	}
	s := &t.slots[i]
	s.member.Store(v)
	if s.hash.Load() == 0 {
		s.hash.Store(taken(hash))
		t.used++
	}
	t.live++
}

// copied returns a table of the present members, with room for as many again.
func (t *hashTable[T]) copied() *hashTable[T] {
	next := newHashTable[T](t.live + 1)
	for i := range t.slots {
		if v := t.slots[i].member.Load(); v != nil {
			next.store(t.slots[i].hash.Load(), v)
		}
	}
	return next
}

// home returns the first slot to probe for a hash.
func (t *hashTable[T]) home(hash uint64) int { return int(taken(hash) & uint64(len(t.slots)-1)) }

func (t *hashTable[T]) after(i int) int { return (i + 1) & (len(t.slots) - 1) }

// taken returns a hash in the form stored in slots.
func taken(hash uint64) uint64 { return max(hash, 1) }
