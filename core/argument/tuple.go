package argument

import (
	"encoding/binary"
	"hash/maphash"
	"strings"
)

// Tuple builds the [Value] of several values in a row, its parts. Two tuples are equal if they have
// equal parts in the same order: a part is written with its kind and its length, so no part can look
// like two, whatever bytes it has. The zero Tuple has no parts.
type Tuple []byte

// With returns the tuple with one more part. It appends to t, as append does.
func (t Tuple) With(v Value) Tuple {
	t = append(t, byte(v.kind))
	if v.kind != valueText {
		t = binary.LittleEndian.AppendUint64(t, v.bits)
	}
	t = binary.AppendUvarint(t, uint64(len(v.text)))
	return append(t, v.text...)
}

// WithParts returns the tuple with those parts of a tuple that are in a set of bits, the lowest for
// the first part, and no value in place of the others. It appends to t, as append does.
func (t Tuple) WithParts(v Value, set uint) Tuple {
	for rest := v.text; rest != ""; set >>= 1 {
		part, after := cutPart(rest)
		if set&1 == 0 {
			part = Value{}
		}
		t, rest = t.With(part), after
	}
	return t
}

// Value returns the value that has these parts. It copies the tuple.
func (t Tuple) Value() Value {
	v := Value{kind: valueTuple, text: string(t)}
	for rest := v.text; rest != ""; {
		var part Value
		if part, rest = cutPart(rest); part.IsEmpty() {
			v.bits = 1
		}
	}
	return v
}

// Is reports whether v is the value that has these parts.
func (t Tuple) Is(v Value) bool { return v.kind == valueTuple && v.text == string(t) }

// Hash returns the hash of the value that has these parts; see [Value.Hash].
func (t Tuple) Hash() uint64 { return maphash.Bytes(seed, t) }

// cutPart returns the first part of a tuple's text, and the text after it.
func cutPart(text string) (part Value, rest string) {
	part.kind, rest = valueKind(text[0]), text[1:]
	if part.kind != valueText {
		var bits [8]byte
		copy(bits[:], rest)
		part.bits, rest = binary.LittleEndian.Uint64(bits[:]), rest[8:]
	}
	n, digits := 0, 0
	for more := true; more; digits++ {
		n |= int(rest[digits]&0x7f) << (7 * digits)
		more = rest[digits] >= 0x80
	}
	part.text, rest = rest[digits:digits+n], rest[digits+n:]
	return part, rest
}

// Parts returns the parts of a tuple, or v itself if it is none.
func (v Value) Parts() (all []Value) {
	if v.kind != valueTuple {
		return []Value{v}
	}
	for rest := v.text; rest != ""; {
		var part Value
		part, rest = cutPart(rest)
		all = append(all, part)
	}
	return all
}

// IsEmpty reports whether v is empty text, or a tuple with such a part.
func (v Value) IsEmpty() bool {
	return v.kind == valueText && v.text == "" || v.kind == valueTuple && v.bits != 0
}

// tupleText shows the parts of a tuple.
func (v Value) tupleText() string {
	var texts []string
	for _, part := range v.Parts() {
		texts = append(texts, part.String())
	}
	return strings.Join(texts, ", ")
}

// tupleKey is Key for a tuple: the keys of its parts, each with its length before it.
func (v Value) tupleKey() string {
	key := []byte{byte(valueTuple)}
	for _, part := range v.Parts() {
		k := part.Key()
		key = append(binary.AppendUvarint(key, uint64(len(k))), k...)
	}
	return string(key)
}
