package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// hash identifies the content of a file. The zero hash is no content.
type hash [sha256.Size]byte

func hashOf(data []byte) hash { return sha256.Sum256(data) }

// String returns the first 12 hex digits of the hash, which tell the versions of a file apart
// and can be read out: what sha256sum begins with. "" for the zero hash.
func (h hash) String() string {
	if h == (hash{}) {
		return ""
	}
	return hex.EncodeToString(h[:6])
}

// snapshot is the file as it was read at one time, or why it couldn't be.
type snapshot struct {
	taken    time.Time
	done     time.Time // when reading was over; it may have taken its time
	data     []byte
	hash     hash
	modified time.Time
	err      error
}

func (w *fileWatch) read() snapshot {
	s := snapshot{taken: time.Now()}
	data, info, err := readFile(w.file, MaxFileSize)
	s.done = time.Now()
	if err != nil {
		s.err = err
		return s
	}
	s.data, s.hash, s.modified = data, hashOf(data), info.ModTime()
	return s
}

// sameContent reports whether loading s would end as loading o did.
func (s snapshot) sameContent(o snapshot) bool {
	return s.hash == o.hash && errText(s.err) == errText(o.err)
}

// sameFile reports whether, besides, nobody wrote between the two.
func (s snapshot) sameFile(o snapshot) bool {
	return s.sameContent(o) && s.modified.Equal(o.modified)
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
