package spec

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/internal/shown"
)

// Shed decides which calls a rule refuses first under overload. The zero value is [ShedNone].
type Shed uint8

// The orders.
const (
	ShedNone   Shed = iota // any calls, as they come
	ShedLevels             // calls of the lowest criticality; see api.Criticality
)

var shedNames = shown.NewEnum[Shed]("shed order", "none", "levels")

// String returns the name used in rule files.
func (s Shed) String() string { return shedNames.Name(s) }

// MarshalText writes the name used in rule files.
func (s Shed) MarshalText() ([]byte, error) { return shedNames.Marshal(s) }

// UnmarshalText reads the name used in rule files.
func (s *Shed) UnmarshalText(text []byte) error { return shedNames.Parse(text, s) }

// Floors keep levels of calls from starving: a level that has less in flight than this share of the
// limit leaves nothing free for the levels above. The limit itself always holds. The zero value has
// no floors.
type Floors struct {
	// Critical is the floor of critical calls; 0 means none.
	Critical Percent `yaml:"critical,omitempty"`
	// SheddablePlus is the floor of sheddablePlus calls; 0 means none.
	SheddablePlus Percent `yaml:"sheddablePlus,omitempty"`
	// Sheddable is the floor of sheddable calls; 0 means none.
	Sheddable Percent `yaml:"sheddable,omitempty"`
}

// Sum returns the sum of the floors.
func (f Floors) Sum() Percent { return f.Critical + f.SheddablePlus + f.Sheddable }

// CheckShed returns a [FieldError] if a rule can't shed in that order, with those floors.
func CheckShed(s Shed, f Floors) error {
	if !shedNames.Has(s) {
		return BadField("shed", "%d is unknown: use api.ShedNone or api.ShedLevels", s)
	}
	for _, of := range []struct {
		key   string
		floor Percent
	}{{"critical", f.Critical}, {"sheddablePlus", f.SheddablePlus}, {"sheddable", f.Sheddable}} {
		if of.floor < 0 || of.floor > 100 {
			return BadField("floors."+of.key, "is %v: use a share of the limit from 0%% to 100%%", of.floor)
		}
	}
	if s == ShedNone && f != (Floors{}) {
		return BadField("floors", "has no meaning for shed none: remove it, or set shed to levels")
	}
	return nil
}

// Percent is a share in whole percent. In rule files it is text, as in 5%.
type Percent int

// String returns the share as in "5%".
func (p Percent) String() string { return strconv.Itoa(int(p)) + "%" }

// MarshalText writes the share as in "5%".
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a share as in "5%".
func (p *Percent) UnmarshalText(text []byte) error {
	digits, ok := strings.CutSuffix(string(text), "%")
	v, err := strconv.ParseUint(digits, 10, 31)
	if !ok || err != nil {
		*p = 0
		return fmt.Errorf("%q is no share: use a whole number of percent, as in 5%%", text)
	}
	*p = Percent(v)
	return nil
}
