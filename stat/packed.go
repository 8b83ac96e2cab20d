package stat

import "encoding/binary"

// Pack appends the counts to b, in a few bytes if they are small, for code that stores many Counts.
// [Counts.Unpack] reads them.
func (c *Counts) Pack(b []byte) []byte {
	for _, n := range c.numbers() {
		b = binary.AppendVarint(b, *n)
	}
	return b
}

// Unpack sets the counts from the output of [Counts.Pack] at the beginning of b, and returns the
// remainder. It may panic on malformed input.
func (c *Counts) Unpack(b []byte) []byte {
	for _, n := range c.numbers() {
		var size int
		*n, size = binary.Varint(b)
		b = b[size:]
	}
	return b
}

// numbers returns pointers to the fields.
func (c *Counts) numbers() [10]*int64 {
	return [...]*int64{
		&c.Pass, &c.Block, &c.Exception, &c.Complete, &c.Occupied, &c.Entered, &c.Exited, &c.LongLived, (*int64)(&c.RT), &c.minRT,
	}
}
