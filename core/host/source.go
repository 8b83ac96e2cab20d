package host

// Source says how busy the machine is. Its methods are never called concurrently.
type Source interface {
	// Load is the load average of the last minute. Below 0 means that it is not known yet.
	Load(now int64) (float64, error)
	// CPU is the used share of the CPU time that may be used, 0 to 1. Below 0 means that it is not
	// known yet.
	CPU(now int64) (float64, error)
	// Memory is the memory that is used, and how much may be.
	Memory(now int64) (Memory, error)
}

// Memory is how much memory is used and how much may be, in bytes. A Limit of 0 means that it is
// not known.
type Memory struct{ Used, Limit int64 }

// Share is the used part of what may be used, below 0 if the limit is not known.
func (m Memory) Share() float64 {
	if m.Limit <= 0 {
		return unknown
	}
	return float64(m.Used) / float64(m.Limit)
}

// Use is how busy the machine is, as of the last sample; below 0 is what no rule asks for, or what
// can't be read.
type Use struct {
	Load   float64 // the load average of the last minute
	CPU    float64 // the used share of the CPU time that may be used, 0 to 1
	Memory float64 // used, in bytes
}

// unknown is a reading that is above no threshold.
const unknown = -1
