package family

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/meter"
	"github.com/penstock-go/penstock/internal/shown"
)

// Tenants are the tenants of a rule that shares its limit between them, or only between levels of
// criticality: then all calls of a level are one tenant's.
type Tenants struct {
	Sharing      meter.Sharing
	by, weightBy engine.Part
}

// NewTenants returns the tenants of a rule, or nil if it doesn't share. perShare is the number of
// calls of a share that may wait if s names no tenants.
func NewTenants(s spec.Share, shed spec.Shed, perShare int, now func() int64) *Tenants {
	if s.By == "" && shed != spec.ShedLevels {
		return nil
	}
	if s.By == "" {
		s.PerShareQueue, s.MaxShares = perShare, 1
	}
	return &Tenants{
		by: part(s.By), weightBy: part(s.WeightBy),
		Sharing: meter.Sharing{
			Now: now, By: s.By, PerShare: s.PerShareQueue, MaxShares: s.MaxShares,
			Weights: weights(s.Weights), ByClass: s.WeightBy != "", Levels: shed == spec.ShedLevels,
		},
	}
}

var _ [meter.Levels]struct{} = [core.Sheddable - core.CriticalPlus + 1]struct{}{}

// part returns the part of a call that a text names.
func part(text string) engine.Part {
	if text == spec.Origin {
		return engine.Part{Of: engine.PartOrigin}
	}
	return engine.Part{Param: strings.TrimPrefix(text, spec.ParamPrefix)}
}

// weights returns the weights of values: a name that is a number, as it is usually written, stands
// for the number as well.
func weights(named map[string]int) map[argument.Value]int64 {
	all := make(map[argument.Value]int64, len(named))
	for name, w := range named {
		all[argument.Of(name)] = int64(w)
		if n, err := strconv.ParseInt(name, 10, 64); err == nil && strconv.FormatInt(n, 10) == name {
			all[argument.Int(n)] = int64(w)
		}
	}
	return all
}

// Of returns the tenant of a call.
func (t *Tenants) Of(inv *engine.Invocation) (tenant meter.Tenant) {
	if t.Sharing.By != "" {
		tenant.Name = inv.Part(&t.by)
	}
	if t.Sharing.ByClass {
		tenant.Class = inv.Part(&t.weightBy)
	}
	if t.Sharing.Levels {
		tenant.Level = int(inv.Level() - core.CriticalPlus) // meter.Levels has room for all
	}
	return tenant
}

// PlaceInShare says where a call would wait in its share, as in "2nd of 3 in its share".
func PlaceInShare(share *meter.ShareLook) string {
	return fmt.Sprintf("%s of %d in its share", ordinal(share.Place), share.Queued+1)
}

// ordinal returns "1st", "2nd" and so on.
func ordinal(n int) string {
	ending := "th"
	if n/10%10 != 1 && n%10 <= 3 {
		ending = [4]string{"th", "st", "nd", "rd"}[n%10]
	}
	return strconv.Itoa(n) + ending
}

// Name names a share for people: the tenant, the level of its calls, or both.
func (t *Tenants) Name(x *meter.ShareStats) (name string) {
	level := (core.CriticalPlus + core.Level(x.Level)).String()
	switch text, ok := x.Tenant.Scalar().(string); {
	case t.Sharing.By == "":
		return level
	case x.Other > 0:
		name = fmt.Sprintf("others %d", x.Other)
	case x.Tenant.IsNone():
		name = "no tenant"
	case ok:
		name = shown.Label(text)
	default:
		name = shown.Label(x.Tenant.String())
	}
	if t.Sharing.Levels {
		name += ", " + level
	}
	return name
}
