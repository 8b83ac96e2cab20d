package rules

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// cache is a file that keeps a document of a source: a line of JSON that describes the document,
// and then its bytes.
//
// A program may be killed while it writes, and the machine may lose power. So a document is written
// to a temporary file, which is renamed to the cache once all of it is on the disk; see
// [replaceFile]. The hash of the document reveals any other damage to the file.
type cache struct {
	path   string
	source string // the source's name: rules of another source don't count
	disk   disk
}

// cached is the content of a cache.
type cached struct {
	Document
	saved time.Time
}

// cacheHead is the line that describes a document.
type cacheHead struct {
	Format   string    `json:"format"`
	Source   string    `json:"source"`
	Revision string    `json:"revision"`
	Saved    time.Time `json:"saved"`
	SHA256   string    `json:"sha256"`
}

const (
	cacheFormat  = "penstock rules 1"
	maxCacheHead = 16 << 10 // bytes
)

func (c *cache) write(doc cached) error {
	if _, err := Load(c.path); err == nil { // the path was meant for another file
		return &FileError{File: c.path, Problem: "is a rule file, which a cache would replace: give the cache a separate file"}
	}
	h := hashOf(doc.Data)
	head, err := json.Marshal(cacheHead{cacheFormat, c.source, doc.Revision, doc.saved, hex.EncodeToString(h[:])})
	if err != nil {
		return err
	}
	if len(head) >= maxCacheHead {
		return fmt.Errorf("%s: the name of the source and the revision have %d bytes, the maximum is %d", c.path, len(head), maxCacheHead-1)
	}
	return replaceFile(c.disk, c.path, nil, 0o600, append(append(head, '\n'), doc.Data...))
}

func (c *cache) read() (cached, error) {
	fail := func(format string, args ...any) (cached, error) {
		return cached{}, &FileError{File: c.path, Problem: cut(printable(fmt.Sprintf(format, args...)), maxShown)}
	}
	text, info, err := readFile(c.path, maxCacheHead+MaxFileSize, trust{})
	if err != nil {
		return cached{}, err
	}
	if belongsToOther(info) { // an attacker may have put it there
		return fail("belongs to another user")
	}
	line, data, _ := bytes.Cut(text, []byte("\n"))
	var head cacheHead
	if err := json.Unmarshal(line, &head); err != nil || head.Format != cacheFormat {
		return fail("is not a cache of rules")
	}
	if head.Saved.IsZero() {
		return fail("is damaged: it doesn't say when it was written")
	}
	if head.Source != c.source {
		return fail("is the cache of another source, %q", clip(head.Source))
	}
	if h := hashOf(data); head.SHA256 != hex.EncodeToString(h[:]) {
		return fail("is damaged: its content doesn't match its hash")
	}
	return cached{Document{data, head.Revision}, head.Saved}, nil
}
