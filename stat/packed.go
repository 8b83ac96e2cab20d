package stat

import "encoding/binary"

// Pack appends the counts to b, in a few bytes if they are small: for code that keeps many of
// them for a while. [Counts.Unpack] reads them.
func (c *Counts) Pack(b []byte) []byte {
	for _, n := range c.numbers() {
		b = binary.AppendVarint(b, *n)
	}
	return b
}

// Unpack sets the counts to those that [Counts.Pack] has put at the beginning of b, and
// returns what follows them. Other bytes give other counts, or panic.
func (c *Counts) Unpack(b []byte) []byte {
	for _, n := range c.numbers() {
		var size int
		*n, size = binary.Varint(b)
		b = b[size:]
	}
	return b
}

// numbers are the fields.
func (c *Counts) numbers() [10]*int64 {
	return [...]*int64{
		&c.Pass, &c.Block, &c.Exception, &c.Complete, &c.Occupied, &c.Entered, &c.Exited, &c.LongLived, (*int64)(&c.RT), &c.minRT,
	}
}
