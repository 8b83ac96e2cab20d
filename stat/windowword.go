package stat

// The word of a window: everything a call needs in order to decide and count without mu.
//
//	bits   0-38   total     the units that count; maxTotal stands for that many or more
//	bit      39   lent      total includes units that were lent to lanes, see windowlend.go
//	bits  40-59   newest    the last bits of the newest bucket's number
//	bits  60-62   era mark  0 in the first era, then 1 to 7 in turn, see windowera.go
//	bit      63   closed    only a call that holds mu may count
//
// # Invariants
//
// When mu is released, the word equals packedLocked; then each swap changes the word's total alone:
// it adds units to the newest bucket, or takes some out (see [Window.Cancel]). The word is open unless
// something is borrowed or the total doesn't fit. While it is closed there are no swaps, and
// Window.total is up to date. A call that takes mu closes the word and counts in the newest bucket
// what swaps have changed, before anything else; so a swap never meets a window that is being changed.
// Only contend takes mu without that: it changes no count. The word is stored before newest, see
// [Window.TryAdd].
type word uint64

const (
	totalBits  = 39
	newestAt   = totalBits + 1
	eraAt      = 60
	eraMarks   = 7
	maxTotal   = 1<<totalBits - 1 // or more; then calls take mu
	lent       = word(1) << totalBits
	newestBits = word(1)<<eraAt - 1<<newestAt
	eraBits    = closed - 1<<eraAt
	closed     = word(1) << 63
)

func (x word) total() int64 { return int64(x & maxTotal) }

func (x word) lends() bool { return x&lent != 0 }

func (x word) closed() bool { return x >= closed }

// takes reports whether a call may be counted by a swap of the word, given the newest bucket and
// the total after the call.
func (x word) takes(newest, total int64) bool {
	return x&(closed|newestBits) == word(newest)<<newestAt&newestBits && uint64(total) < maxTotal
}

// era returns the latest era up to the current one that the word may belong to.
func (x word) era(current uint64) uint64 {
	if x&eraBits == 0 {
		return 0
	}
	return current - (current-uint64(x&eraBits>>eraAt))%eraMarks
}

// eraMark distinguishes an era from the six before it, and the first, whose mark is 0, from all.
func eraMark(era uint64) word {
	if era == 0 {
		return 0
	}
	return word(1 + (era-1)%eraMarks)
}

// packedLocked returns the word for the state under mu.
func (w *Window) packedLocked() word {
	x := eraMark(w.era.Load())<<eraAt | word(w.head)<<newestAt&newestBits | word(min(max(w.total, 0), maxTotal))
	if w.waiting != 0 || w.total < 0 || w.total >= maxTotal {
		x |= closed
	}
	if w.lent != 0 {
		x |= lent
	}
	return x
}

// load returns the word.
func (w *Window) load() word { return word(w.word.Load()) }

// swap counts n units in the word, unless it has changed.
func (w *Window) swap(x word, n int64) bool {
	return w.word.CompareAndSwap(uint64(x), uint64(x)+uint64(n))
}

// lock takes mu, closes the word and collects lent units: the state under mu is then complete.
func (w *Window) lock() {
	w.lockOnly()
	w.collectLocked()
}

// lockOnly takes mu and closes the word, but collects nothing. What calls counted or took out without
// the lock is now in the newest bucket, as are units that lanes may still spend.
func (w *Window) lockOnly() {
	w.mu.Lock()
	if w.load().closed() { // it was left closed
		return
	}
	if n := word(w.word.Or(uint64(closed))).total() - w.total; n != 0 {
		w.putLocked(w.head, n)
	}
}

// unlock publishes the new state of the window in one step, and opens the word if calls may be
// counted without the lock.
func (w *Window) unlock() {
	w.showLocked(0)
	w.mu.Unlock()
}

// showLocked stores the state under mu for readers without the lock, with these bits set in the
// word as well.
func (w *Window) showLocked(bits word) {
	w.word.Store(uint64(w.packedLocked() | bits)) // before newest, see TryAdd
	if w.newest.Load() != w.head {
		w.newest.Store(w.head)
	}
}
