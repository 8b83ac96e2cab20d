package argument

import (
	"encoding/binary"
	"hash/maphash"
	"reflect"
)

// reflected is like Of, but for values that may have parts.
func reflected(v reflect.Value) Value {
	for range 8 { // pointers and interfaces may form a cycle
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
		return Int(v.Int())
	case v.CanUint():
		return uintValue(v.Uint())
	case v.CanFloat():
		return floatValue(v.Float())
	case kind == reflect.Bool:
		return boolValue(v.Bool())
	case kind == reflect.String:
		return text(v.String())
	case isText(v):
		if v.IsNil() {
			return Value{}
		}
		return text(string(v.Bytes()))
	case kind == reflect.Chan, kind == reflect.Func, kind == reflect.Map, kind == reflect.Pointer, kind == reflect.UnsafePointer:
		if v.IsNil() {
			return Value{}
		}
		return identity(v)
	}
	d := digest{left: maxDigestParts}
	d.SetSeed(seed)
	d.number(typeNumber(v.Type()))
	d.add(v, 0)
	return ofDigest(d.Sum64(), v.Type())
}

func isScalar(kind reflect.Kind) bool {
	return kind >= reflect.Bool && kind <= reflect.Float64 || kind == reflect.String
}

// isText reports whether v is a []byte or similar.
func isText(v reflect.Value) bool {
	return v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8
}

// identity returns the value of something that is equal only to itself. Reading its contents could
// race with its other users.
func identity(v reflect.Value) Value {
	var where [16]byte
	binary.NativeEndian.PutUint64(where[:8], typeNumber(v.Type()))
	binary.NativeEndian.PutUint64(where[8:], uint64(v.Pointer()))
	return ofDigest(maphash.Bytes(seed, where[:]), v.Type())
}

// ofDigest returns a value that a hash distinguishes. Its text shows only the type.
func ofDigest(hash uint64, t reflect.Type) Value {
	return Value{kind: valueDigest, bits: hash, text: cutText(t.String(), MaxText)}
}

// typeNumber returns the address of a type: each type has one that doesn't change, while different
// types may print the same.
func typeNumber(t reflect.Type) uint64 { return uint64(reflect.ValueOf(t).Pointer()) }

// digest hashes a composite value, to a depth and size that a call can afford. Composites that
// differ only beyond that are equal.
type digest struct {
	maphash.Hash
	left int // parts left to read
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
			d.number(typeNumber(v.Elem().Type()))
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
		d.number(reflected(v).bits)
	}
}

func (d *digest) number(n uint64) {
	var b [8]byte
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
	_, _ = d.Write(b[:])
}
