package core

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"reflect"
	"strconv"
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

func reflectedValue(v reflect.Value) Value {
	for range 8 { // pointers and interfaces that lead to each other end somewhere
		switch v.Kind() {
		case reflect.Pointer:
			if v.IsNil() {
				return Value{}
			}
			if e := v.Elem(); e.Kind() == reflect.Pointer || isScalar(e.Kind()) {
				v = e
				continue
			}
			return identity(v)
		case reflect.Interface:
			v = v.Elem()
			continue
		}
		break
	}
	switch kind := v.Kind(); {
	case kind == reflect.Invalid:
		return Value{}
	case v.CanInt():
		return intValue(v.Int())
	case v.CanUint():
		return uintValue(v.Uint())
	case v.CanFloat():
		return floatValue(v.Float())
	case kind == reflect.Bool:
		return boolValue(v.Bool())
	case kind == reflect.String:
		return textValue(v.String())
	case isText(v):
		if v.IsNil() {
			return Value{}
		}
		return textValue(string(v.Bytes()))
	case kind == reflect.Chan, kind == reflect.Func, kind == reflect.Map, kind == reflect.Pointer, kind == reflect.UnsafePointer:
		if v.IsNil() {
			return Value{}
		}
		return identity(v)
	}
	d := digest{left: maxDigestParts}
	d.SetSeed(valueSeed)
	d.add(v, 0)
	return Value{kind: valueDigest, bits: d.Sum64(), text: typeText(v)}
}

func isScalar(kind reflect.Kind) bool {
	return kind >= reflect.Bool && kind <= reflect.Float64 || kind == reflect.String
}

// isText reports whether v is a []byte or of a type like it.
func isText(v reflect.Value) bool {
	return v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8
}

// identity is the value of something that is only equal to itself. Looking inside
// would race with whoever shares it.
func identity(v reflect.Value) Value {
	return Value{kind: valueDigest, bits: uint64(v.Pointer()), text: typeText(v)}
}

func typeText(v reflect.Value) string {
	name := v.Type().String()
	return name[:min(len(name), MaxValueText)]
}

// digest hashes something that is made of parts, as deep and as much of it as a call
// can afford. What differs only beyond that is one value.
type digest struct {
	maphash.Hash
	left int // parts to look at
}

const (
	maxDigestParts = 256
	maxDigestDepth = 8
)

func (d *digest) add(v reflect.Value, depth int) {
	if d.left--; d.left < 0 || depth > maxDigestDepth {
		return
	}
	d.number(uint64(v.Kind()))
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			d.add(field, depth+1)
		}
	case reflect.Array, reflect.Slice:
		d.number(uint64(v.Len()))
		for i := range min(v.Len(), maxDigestParts) {
			d.add(v.Index(i), depth+1)
		}
	case reflect.Interface:
		if !v.IsNil() {
			_, _ = d.WriteString(typeText(v.Elem()))
			d.add(v.Elem(), depth+1)
		}
	case reflect.Complex64, reflect.Complex128:
		c := v.Complex()
		d.number(floatBits(real(c)))
		d.number(floatBits(imag(c)))
	case reflect.String:
		d.number(uint64(v.Len()))
		_, _ = d.WriteString(v.String())
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		d.number(uint64(v.Pointer()))
	default: // a number or a boolean
		d.number(reflectedValue(v).bits)
	}
}

func (d *digest) number(n uint64) {
	var b [8]byte
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
	_, _ = d.Write(b[:])
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

// String shows the value: text in quotes, so that "7" and 7 look different; of what
// is long or made of parts, the begin or the type and a hash.
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
	}
	return v.text + "#" + strconv.FormatUint(v.bits, 36)
}

// Scalar returns what a rule file says for the value: a string, a bool, an int64, a
// uint64 or a float64; nil for any other.
func (v Value) Scalar() any {
	switch v.kind {
	case valueInt:
		return int64(v.bits)
	case valueUint:
		return v.bits
	case valueFloat:
		return math.Float64frombits(v.bits)
	case valueBool:
		return v.bits == 1
	case valueText:
		return v.text
	}
	return nil
}

// SetScalar is the reverse of [Value.Scalar].
func (v *Value) SetScalar(x any) error {
	*v = ValueOf(x)
	return nil
}

// Occurrence is a value of a call and how often the call names it.
type Occurrence struct {
	Value Value
	Times int64
}

// ArgValues returns the values of an argument of the call, those of nil left out: one,
// or of a slice each element's. An index below 0 counts from the end, -1 being the
// last; if there is no such argument there are no values. The slice is the
// invocation's: the next call of ArgValues or ParamValues overwrites it.
func (inv *Invocation) ArgValues(index int) []Occurrence {
	inv.valued = true
	inv.values = inv.values[:0]
	if index < 0 {
		index += len(inv.args)
	}
	if index >= 0 && index < len(inv.args) {
		inv.addValues(inv.args[index])
	}
	return inv.values
}

// ParamValue is the value attached under a name, nil if there is none, or that of nil.
// sole is false if there are several; then see [Invocation.ParamValues].
func (inv *Invocation) ParamValue(name string) (v *Value, sole bool) {
	for i := range inv.params {
		if p := &inv.params[i]; p.name == name && p.value.kind != valueNone {
			if v != nil {
				return nil, false
			}
			v = &p.value
		}
	}
	return v, true
}

// ParamValues is [Invocation.ArgValues] for the attachments of a name.
func (inv *Invocation) ParamValues(name string) []Occurrence {
	inv.valued = true
	inv.values = inv.values[:0]
	for i := range inv.params {
		if p := &inv.params[i]; p.name == name {
			inv.addValue(p.value)
		}
	}
	return inv.values
}

// param is an attachment of a call.
type param struct {
	name  string
	value Value
}

func (inv *Invocation) addValues(arg any) {
	eachElement(arg, inv.addValue)
}

// eachElement calls f with the value of v, or of each element if v is a slice that is
// no text.
func eachElement(v any, f func(Value)) {
	if !isList(v) {
		f(ValueOf(v))
		return
	}
	list := reflect.ValueOf(v)
	for i := range list.Len() {
		f(reflectedValue(list.Index(i)))
	}
}

func isList(v any) bool {
	switch v.(type) {
	case string, int, int64, bool, float64, Value, nil:
		return false
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Slice && !isText(r)
}

// addValue notes a value, or that one is there once more. Beyond a few, the ones that
// are there are found by a map.
func (inv *Invocation) addValue(v Value) {
	const few = 16
	switch n := len(inv.values); {
	case v.IsNone():
	case n < few:
		for i := range inv.values {
			if inv.values[i].Value == v {
				inv.values[i].Times++
				return
			}
		}
		inv.values = append(inv.values, Occurrence{v, 1})
	default:
		if n == few {
			inv.places = make(map[Value]int, 2*few)
			for i := range inv.values {
				inv.places[inv.values[i].Value] = i
			}
		}
		if i, ok := inv.places[v]; ok {
			inv.values[i].Times++
			return
		}
		inv.places[v] = n
		inv.values = append(inv.values, Occurrence{v, 1})
	}
}

// forgetValues empties what the call had attached and what was seen of it, so that the
// pooled state keeps no text alive. What was very much is not kept at all.
func (inv *Invocation) forgetValues() {
	const most = 64
	for i := len(inv.params) - 1; i >= 0; i-- { // they are few: clear is for many
		inv.params[i] = param{}
	}
	inv.params = inv.params[:0]
	if cap(inv.params) > most {
		inv.params = nil
	}
	if !inv.valued {
		return
	}
	inv.valued = false
	clear(inv.values[:cap(inv.values)])
	inv.values = inv.values[:0]
	if cap(inv.values) > most {
		inv.values = nil
	}
	inv.places = nil
}
