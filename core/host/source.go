package host

// Source measures the machine. Its methods are never called concurrently.
type Source interface {
	// Load returns the load average of the last minute, below 0 if it is not known yet.
	Load(now int64) (float64, error)
	// CPU returns the used share of the available CPU time, 0 to 1; below 0 if it is not known yet.
	CPU(now int64) (float64, error)
	// Memory returns the used and the available memory.
	Memory(now int64) (Memory, error)
}

// Memory is the used memory and its limit, in bytes. A Limit of 0 is unknown.
type Memory struct{ Used, Limit int64 }

// Share returns the used share of the limit, below 0 if the limit is not known.
func (m Memory) Share() float64 {
	if m.Limit <= 0 {
		return unknown
	}
	return float64(m.Used) / float64(m.Limit)
}

// Use is the last sample of the machine; a field below 0 is not needed by any rule, or can't be
// read.
type Use struct {
	Load   float64 // the load average of the last minute
	CPU    float64 // used share of the available CPU time, 0 to 1
	Memory float64 // used, in bytes
}

// unknown is a reading that exceeds no threshold.
const unknown = -1
