package inspect

import "sync"

// The limits for all readers of a handler: this many readers, each with a buffer of [chunk] bytes
// and a stack, and this many bytes of copies. One copy alone may be larger.
const (
	maxReaders = 256
	maxHeld    = 32 << 20
)

// room holds the resources that the readers of a handler share. It is safe for concurrent use.
type room struct {
	making sync.Mutex // one copy at a time; locked before mu

	mu      sync.Mutex
	readers int
	held    int // bytes of copies with readers
}

// copies makes copies for many readers. It is safe for concurrent use. A tree of 10,000 resources
// is 25 MB as JSON and 3 MB as a copy, so readers share copies, and each renders its own reply.
// Readers that arrive while a copy is being made share the next: one goroutine copies for all of them,
// and still no reader gets a copy older than its request. The last reader releases a copy.
type copies[T any] struct {
	*room
	make func() (c *T, size int)
	drop func(*T) // releases a copy that is no longer read; may be nil

	// Guarded by room.mu:
	next   *edition[T] // the copy that new readers join, or nil if there is none
	latest int         // the size of the latest copy
}

// edition is a copy with its number of readers.
type edition[T any] struct {
	copy func() *T // nil if there was no room for it

	// Guarded by room.mu:
	made    *T
	size    int
	readers int
}

// read calls use with a copy made from now on. It returns false, without calling use, if there are
// too many readers, or they hold too much.
func (c *copies[T]) read(use func(*T)) bool {
	e := c.join()
	if e == nil {
		return false
	}
	defer c.leave(e)
	copied := e.copy()
	if copied == nil {
		return false
	}
	use(copied)
	return true
}

func (c *copies[T]) join() *edition[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.readers == maxReaders {
		return nil
	}
	if c.next == nil {
		e := new(edition[T])
		e.copy = sync.OnceValue(func() *T { return c.fill(e) })
		c.next = e
	}
	c.readers++
	c.next.readers++
	return c.next
}

func (c *copies[T]) leave(e *edition[T]) {
	if unread := c.unread(e); unread != nil && c.drop != nil {
		c.drop(unread)
	}
}

// unread returns the copy if this was its last reader.
func (c *copies[T]) unread(e *edition[T]) *T {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readers--
	e.readers--
	if e.readers > 0 || e.made == nil {
		return nil
	}
	c.held -= e.size
	return e.made
}

func (c *copies[T]) fill(e *edition[T]) *T {
	c.making.Lock()
	defer c.making.Unlock()
	if !c.close() {
		return nil
	}
	copied, size := c.make()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest = size
	if !c.fits(size) {
		return nil
	}
	c.held += size
	e.made, e.size = copied, size
	return copied
}

// close directs new readers to another copy, before this one is made. It reports whether there may
// be room for this one.
func (c *copies[T]) close() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = nil
	return c.fits(c.latest)
}

func (r *room) fits(size int) bool { return r.held == 0 || r.held+size <= maxHeld }
