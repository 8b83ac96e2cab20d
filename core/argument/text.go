package argument

import (
	"math"
	"strconv"
	"strings"
)

// String shows the value: text in quotes, so that "7" and 7 look different; long text as its
// beginning and a hash; a composite value as its type and a hash; the parts of a tuple with commas
// between them.
func (v Value) String() string {
	switch v.kind {
	case valueNone:
		return "none"
	case valueInt:
		return strconv.FormatInt(int64(v.bits), 10)
	case valueUint:
		return strconv.FormatUint(v.bits, 10)
	case valueFloat:
		s := strconv.FormatFloat(math.Float64frombits(v.bits), 'g', -1, 64)
		if !strings.ContainsAny(s, ".eIN") {
			s += ".0"
		}
		return s
	case valueBool:
		return strconv.FormatBool(v.bits == 1)
	case valueText:
		return strconv.Quote(v.text)
	case valueLong:
		return strconv.Quote(v.text+"…") + "#" + strconv.FormatUint(v.bits, 36)
	case valueTuple:
		return v.tupleText()
	}
	return v.text + "#" + strconv.FormatUint(v.bits, 36)
}

// Scalar returns the value as written in a rule file: a string, a bool, an int64, a uint64 or a
// finite float64. It returns nil for any other value.
func (v Value) Scalar() any {
	switch v.kind {
	case valueInt:
		return int64(v.bits)
	case valueUint:
		return v.bits
	case valueFloat:
		if f := math.Float64frombits(v.bits); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
	case valueBool:
		return v.bits == 1
	case valueText:
		return v.text
	}
	return nil
}

// SetScalar is the reverse of [Value.Scalar].
func (v *Value) SetScalar(x any) error {
	*v = Of(x)
	return nil
}
