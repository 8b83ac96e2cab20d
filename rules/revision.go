package rules

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
)

// MaxRevisions is the number of revisions kept.
const MaxRevisions = 10

// Revision is one state of the rules of all sources together.
type Revision struct {
	Number uint64 // from 1, one more at each swap that changes the content of a source
	// Hash is the first 12 hex digits of a SHA-256, equal wherever the same contents are combined
	// in the same order: of the content, if only one source has rules, otherwise of the contents'
	// hashes one after another.
	Hash      string
	Time      time.Time
	Sources   []string   // that changed, or are gone
	Change    Change     // of the rules in force, from the revision before
	Rules     int        // in force
	Overrides []Override // in force; see [Loader.AllowOverrides]
}

// String returns the revision in one line, as in "7 6b3d0f9a51c2 +1 ~0 -0 rules.yaml".
func (r Revision) String() string {
	return fmt.Sprintf("%d %s %v %s", r.Number, r.Hash, r.Change, strings.Join(r.Sources, ", "))
}

// kept is a revision and the contents that it combines.
type kept struct {
	Revision
	pieces []keptPiece // the contents with rules, in their order
}

type keptPiece struct {
	pieceName
	content *content
}

// stamp adds the hash and the time to the revision.
func (k *kept) stamp() {
	k.Time = time.Now()
	switch len(k.pieces) {
	case 0:
	case 1:
		k.Hash = k.pieces[0].content.hash.String()
	default:
		h := sha256.New()
		for _, p := range k.pieces {
			_, _ = h.Write(p.content.hash[:]) // a hash accepts everything
		}
		k.Hash = hash(h.Sum(nil)).String()
	}
}

// Revisions returns the last [MaxRevisions] revisions, oldest first: the last one is in force.
func (l *Loader) Revisions() []Revision {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Revision, len(l.history))
	for i, k := range l.history {
		all[i] = k.Revision
	}
	return all
}
