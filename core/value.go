package core

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"reflect"
	"strings"
)

// Value is what an argument or an attachment of a call is worth to a rule that tells
// values apart. It can be compared and be the key of a map, whatever it was made from,
// and keeps nothing of the caller's alive but the text of a string.
//
// Values are equal if they are worth the same:
//
//   - integers by number, whatever their width: 7, int64(7) and uint8(7);
//   - floats by number, and every NaN is the same one. 7.0 is not 7;
//   - text byte by byte, also that of a []byte; text and numbers differ;
//   - a pointer to any of these is what it points to, and a named type like its
//     underlying one;
//   - structs and arrays are equal if they have one type and all they hold is equal;
//   - of maps, channels, functions and other pointers each is one value of its own.
//
// The zero Value is that of nil: there is none.
type Value struct {
	kind valueKind
	bits uint64 // a number, or a hash of what is too large to keep
	text string // a string, the begin of a long one, or a type
}

type valueKind uint8

const (
	valueNone valueKind = iota
	valueInt
	valueUint // beyond the largest int64
	valueFloat
	valueBool
	valueText
	valueLong // text of more than MaxValueText bytes
	valueDigest
)

// MaxValueText is the length in bytes of the longest text that a [Value] keeps. What is
// longer is told apart by a hash: values come from callers, and tables of them must
// stay small.
const MaxValueText = 64

const longValueText = 32 // what is kept of it, to be recognized

// valueSeed keeps callers from making up values that have one hash.
var valueSeed = maphash.MakeSeed()

// ValueOf returns what v is worth. It never panics. Strings, booleans and numbers
// allocate nothing.
func ValueOf(v any) Value {
	if x, ok := scalarOf(v); ok {
		return x
	}
	if x, ok := v.(Value); ok {
		return x
	}
	return reflectedValue(reflect.ValueOf(v))
}

// scalarOf is ValueOf for strings, booleans and numbers, of whatever name. It lets v
// escape nowhere, so that what a generic function puts into an interface for it stays
// on the stack.
func scalarOf(v any) (Value, bool) {
	switch x := v.(type) {
	case string:
		return textValue(x), true
	case int:
		return intValue(int64(x)), true
	case int64:
		return intValue(x), true
	}
	r := reflect.ValueOf(v)
	switch kind := r.Kind(); {
	case r.CanInt():
		return intValue(r.Int()), true
	case r.CanUint():
		return uintValue(r.Uint()), true
	case r.CanFloat():
		return floatValue(r.Float()), true
	case kind == reflect.Bool:
		return boolValue(r.Bool()), true
	case kind == reflect.String:
		return textValue(r.String()), true
	}
	return Value{}, false
}

func intValue(n int64) Value { return Value{kind: valueInt, bits: uint64(n)} }

func uintValue(n uint64) Value {
	if n > math.MaxInt64 {
		return Value{kind: valueUint, bits: n}
	}
	return intValue(int64(n))
}

func boolValue(b bool) Value {
	if b {
		return Value{kind: valueBool, bits: 1}
	}
	return Value{kind: valueBool}
}

func floatValue(f float64) Value {
	return Value{kind: valueFloat, bits: floatBits(f)}
}

// floatBits are the bits of a number: one pattern for every NaN, one for both zeros.
func floatBits(f float64) uint64 {
	switch {
	case f != f:
		return math.Float64bits(math.NaN())
	case f == 0:
		return 0
	}
	return math.Float64bits(f)
}

func textValue(s string) Value {
	if len(s) <= MaxValueText {
		return Value{kind: valueText, text: s}
	}
	return Value{kind: valueLong, bits: maphash.String(valueSeed, s), text: s[:longValueText]}
}

// IsNone reports whether this is no value.
func (v Value) IsNone() bool { return v == Value{} }

// Hash returns a hash of the value that callers can't foresee: it differs from one
// process to the next.
func (v Value) Hash() uint64 {
	if v.kind == valueText {
		return maphash.String(valueSeed, v.text)
	}
	var number [9]byte // in pieces: to hash a struct goes by way of its type, and costs three times as much
	binary.LittleEndian.PutUint64(number[:], v.bits)
	number[8] = byte(v.kind)
	return maphash.Bytes(valueSeed, number[:]) ^ maphash.String(valueSeed, v.text)
}

// Clone returns the same value with a text of its own. A table that keeps values must
// clone them, or a short string may keep the large one alive that it was cut from.
func (v Value) Clone() Value {
	if v.kind != valueDigest { // whose text is a type's
		v.text = strings.Clone(v.text)
	}
	return v
}
