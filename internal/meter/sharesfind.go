package meter

// find returns the share of a tenant, or nil.
func (s *shares) find(t *Tenant) *Share {
	hash, level := t.Name.Hash(), s.sharing.level(t)
	if x := s.table.find(&t.Name, level, hash); x != nil {
		return x
	}
	if _, named := s.sharing.weight(t); named || s.bound < s.sharing.MaxShares {
		return nil
	}
	return s.bands[level].others[hash%otherShares]
}

// weightOf returns the weight that the share of a tenant has once the tenant's next call joins.
func (s *shares) weightOf(t *Tenant) int64 {
	weight, named := s.sharing.weight(t)
	if !named && s.bound >= s.sharing.MaxShares && s.table.find(&t.Name, s.sharing.level(t), t.Name.Hash()) == nil {
		return 1 // it finds no room of its own
	}
	return weight
}

// obtain returns the share of a tenant, which may be new.
func (s *shares) obtain(g *Semaphore, t *Tenant) *Share {
	s.forget()
	hash, level := t.Name.Hash(), s.sharing.level(t)
	weight, named := s.sharing.weight(t)
	x := s.table.find(&t.Name, level, hash)
	switch {
	case x != nil:
		if s.sharing.ByClass && x.tenant.Class != t.Class {
			x.tenant.Class = t.Class.Clone()
			s.weigh(x, weight)
		}
	case named || s.bound < s.sharing.MaxShares:
		x = s.add(g, level, hash, weight)
		x.tenant, x.named = Tenant{t.Name.Clone(), t.Class.Clone(), level}, named
		s.bound += x.bound()
		s.table.add(x)
	default:
		at := &s.bands[level].others[hash%otherShares]
		if *at == nil {
			*at = s.add(g, level, hash, 1)
			(*at).other = int(hash%otherShares) + 1
		}
		x = *at
	}
	return x
}

func (s *shares) add(g *Semaphore, level int, hash uint64, weight int64) *Share {
	s.ids++
	x := &Share{semaphore: g, band: &s.bands[level], clock: s.sharing.Now, hash: hash, id: s.ids, weight: weight, at: s.now, busy: s.bands[level].busy, all: len(s.all)}
	s.all = append(s.all, x)
	return x
}

// forget looks at two shares, and drops each that is of no more use: a new one would equal it.
func (s *shares) forget() {
	for looks := 2; looks > 0 && len(s.all) > 0; looks-- {
		if s.hand++; s.hand >= len(s.all) {
			s.hand = 0
		}
		x := s.all[s.hand]
		if !x.active() && (x.orphan || len(s.all) > keptShares && x.key() <= x.band.virtual) {
			s.drop(x)
		}
	}
}

func (s *shares) drop(x *Share) {
	s.bound -= x.bound()
	switch {
	case x.other > 0:
		if at := &x.band.others[x.other-1]; *at == x {
			*at = nil
		}
	case !x.orphan:
		s.table.remove(x)
	}
	last := s.all[len(s.all)-1]
	s.all[x.all], last.all = last, x.all
	s.all[len(s.all)-1] = nil
	s.all = s.all[:len(s.all)-1]
	s.gone.add(x.figures)
}
