// Package argument distinguishes the values of calls: the [Value] of an argument or an attachment
// decides which of a rule's per-value limits applies. Most programs don't import it.
package argument

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Value identifies an argument or an attachment of a call to rules that limit each value. It is
// comparable, so it can be a map key, regardless of the original value, and keeps none of the
// caller's memory alive except the text of a string.
//
// Values are equal by these rules:
//
//   - integers by number, regardless of their width: 7, int64(7) and uint8(7);
//   - floats by number, and every NaN is the same. 7.0 is not 7;
//   - text byte by byte, including the contents of a []byte; text and numbers differ;
//   - a pointer to any of these equals its target, and a named type its underlying type;
//   - structs and arrays are equal if they have the same type, not only one that prints the same,
//     and equal contents;
//   - maps, channels, functions and other pointers equal only themselves;
//   - several values in a row if their parts are equal; see [Tuple].
//
// The zero Value is the Value of nil: no value.
type Value struct {
	kind valueKind
	bits uint64 // a number, or the hash of a larger value
	text string // a string, the beginning of a long one, a type, or parts
}

type valueKind uint8

const (
	valueNone valueKind = iota
	valueInt
	valueUint // beyond the largest int64
	valueFloat
	valueBool
	valueText
	valueLong // text of more than MaxText bytes
	valueDigest
	valueTuple // its text has the parts, its bits are 1 if one of them is empty; see Tuple
)

// MaxText is the length in bytes of the longest text that a [Value] keeps. Longer text is
// distinguished by a hash: values come from callers, and tables that hold them must stay small.
const MaxText = 64

const longText = 32 // length of the part kept, so that people recognize it

// seed keeps callers from constructing values that share a hash.
var seed = maphash.MakeSeed()

// Of returns the Value of v. It never panics. Strings, booleans and numbers allocate nothing.
func Of(v any) Value {
	if x, ok := Scalar(v); ok {
		return x
	}
	if x, ok := v.(Value); ok {
		return x
	}
	return reflected(reflect.ValueOf(v))
}

// Scalar is like Of, but for strings, booleans and numbers of any named type. It doesn't let v
// escape, so an argument that a generic function converts to an interface stays on the stack.
func Scalar(v any) (Value, bool) {
	switch x := v.(type) {
	case string:
		return text(x), true
	case int:
		return Int(int64(x)), true
	case int64:
		return Int(x), true
	}
	r := reflect.ValueOf(v)
	switch kind := r.Kind(); {
	case r.CanInt():
		return Int(r.Int()), true
	case r.CanUint():
		return uintValue(r.Uint()), true
	case r.CanFloat():
		return floatValue(r.Float()), true
	case kind == reflect.Bool:
		return boolValue(r.Bool()), true
	case kind == reflect.String:
		return text(r.String()), true
	}
	return Value{}, false
}

// Int returns the value of a number.
func Int(n int64) Value { return Value{kind: valueInt, bits: uint64(n)} }

func uintValue(n uint64) Value {
	if n > math.MaxInt64 {
		return Value{kind: valueUint, bits: n}
	}
	return Int(int64(n))
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

// floatBits returns the bits of a number: one pattern for every NaN, one for both zeros.
func floatBits(f float64) uint64 {
	switch {
	case f != f:
		return math.Float64bits(math.NaN())
	case f == 0:
		return 0
	}
	return math.Float64bits(f)
}

func text(s string) Value {
	if len(s) <= MaxText {
		return Value{kind: valueText, text: s}
	}
	return Value{kind: valueLong, bits: maphash.String(seed, s), text: cutText(s, longText)}
}

// cutText returns the beginning of a text: at most the given number of bytes, in whole characters.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for end := most; end > most-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:most] // not UTF-8
}

// Int returns the number of a value made by the function Int.
func (v Value) Int() int64 { return int64(v.bits) }

// IsNone reports whether v is the zero Value.
func (v Value) IsNone() bool { return v.kind == valueNone }

// Hash returns a hash of the value that callers can't predict: it differs between processes.
func (v Value) Hash() uint64 {
	if v.kind == valueText || v.kind == valueTuple {
		return maphash.String(seed, v.text)
	}
	var number [9]byte // in pieces: hashing a struct uses its type, and costs three times as much
	binary.LittleEndian.PutUint64(number[:], v.bits)
	number[8] = byte(v.kind)
	return maphash.Bytes(seed, number[:]) ^ maphash.String(seed, v.text)
}

// Clone returns the same value with its own copy of the text. A table that keeps values must clone
// them; otherwise a short string may keep alive the large one that it was cut from.
func (v Value) Clone() Value {
	if v.kind != valueDigest { // a digest's text is the name of a type
		v.text = strings.Clone(v.text)
	}
	return v
}

// Key returns a key that is the same in all processes, unlike [Value.Hash]. Texts of more than
// [MaxText] bytes with the same beginning share a key, and so do all values of a type that isn't
// one of Go's scalar types.
func (v Value) Key() string {
	if v.kind == valueTuple {
		return v.tupleKey()
	}
	bits := v.bits
	if v.kind >= valueLong {
		bits = 0 // a hash that differs between processes
	}
	key := binary.BigEndian.AppendUint64([]byte{byte(v.kind)}, bits)
	return string(append(key, v.text...))
}
