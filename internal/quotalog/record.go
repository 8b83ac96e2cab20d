package quotalog

import (
	"encoding/binary"
	"hash/crc32"
)

// magic begins every log.
const magic = "penstock quota log 1\n"

// kind is the kind of a record.
type kind byte

const (
	markOf  kind = 'm' // a: end of the period; b: the mark
	exactOf kind = 'x' // a: end of the period; b: the units used when the process closed the log
	bookOf  kind = 'b' // a: slack; b: units charged to keys without a mark since the latest crash
	crashAt kind = 't' // a: time of the latest opening after a crash
	closed  kind = 'c' // the process closed the log
)

// record is a record of the log. On the disk it has its length and checksum before it.
type record struct {
	kind      kind
	book, key string
	a, b      int64
}

const (
	frame       = 8 // bytes of length and checksum
	mostPayload = 4 * longest
)

var table = crc32.MakeTable(crc32.Castagnoli)

// append appends the record as it is on the disk.
func (r record) append(to []byte) []byte {
	start := len(to)
	to = append(to, make([]byte, frame)...)
	to = append(to, byte(r.kind))
	to = append(binary.AppendUvarint(to, uint64(len(r.book))), r.book...)
	to = append(binary.AppendUvarint(to, uint64(len(r.key))), r.key...)
	to = binary.AppendVarint(binary.AppendVarint(to, r.a), r.b)
	payload := to[start+frame:]
	binary.LittleEndian.PutUint32(to[start:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(to[start+4:], crc32.Checksum(payload, table))
	return to
}

// read reads the record at the start of some bytes, and returns its length on the disk; false if
// there is none.
func read(from []byte) (r record, length int, ok bool) {
	if len(from) < frame {
		return r, 0, false
	}
	n := int(binary.LittleEndian.Uint32(from))
	if n < 5 || n > mostPayload || n > len(from)-frame {
		return r, 0, false
	}
	payload := from[frame : frame+n]
	if crc32.Checksum(payload, table) != binary.LittleEndian.Uint32(from[4:]) {
		return r, 0, false
	}
	r.kind, payload = kind(payload[0]), payload[1:]
	text := func() (s string) {
		size, n := binary.Uvarint(payload)
		if n <= 0 || size > uint64(len(payload)-n) {
			payload = nil
			return ""
		}
		s, payload = string(payload[n:n+int(size)]), payload[n+int(size):]
		return s
	}
	number := func() int64 {
		v, n := binary.Varint(payload)
		if n <= 0 {
			payload = nil
			return 0
		}
		payload = payload[n:]
		return v
	}
	r.book, r.key = text(), text()
	if r.a = number(); payload == nil {
		return r, 0, false
	}
	r.b = number()
	return r, frame + n, payload != nil && len(payload) == 0
}

// readAll calls f with the records of a log without its magic. It returns the number of bytes that
// are no record.
func readAll(from []byte, f func(record)) (skipped int) {
	for len(from) > 0 {
		r, n, ok := read(from)
		if !ok {
			skipped++
			from = from[1:]
			continue
		}
		f(r)
		from = from[n:]
	}
	return skipped
}
