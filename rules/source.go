package rules

import (
	"context"
	"errors"
)

// A Source is a place where a rule file is kept, other than the file system: what
// [Loader.WatchSource] watches.
//
// Its methods may be called from several goroutines. Neither its name nor its errors may
// hold a password, a token or the like, since both are logged. A client that a Source was
// given is the caller's: a Source never closes it.
//
// An error may say when it makes sense to ask again, by a method
//
//	RetryAfter() time.Duration
//
// which [Loader.WatchSource] keeps to, up to five minutes.
type Source interface {
	// Name says in logs, errors and cache files which source this is. It is always the
	// same. Where it ends in .json the document must be JSON.
	Name() string
	// Next returns the document as soon as its revision differs from after. With "" it returns
	// the document immediately. Otherwise it blocks until then, until ctx ends, or for a
	// time of its own choosing; the last is [ErrUnchanged]. The error is [ErrNotFound] if
	// there is no such document. An empty document is one like any other, which the
	// caller has to judge. When ctx ends, so must Next.
	Next(ctx context.Context, after string) (Document, error)
}

// A Writer is a [Source] whose document can be replaced.
type Writer interface {
	// Write replaces the document with data if its revision is after; "" means that there is none
	// yet. Otherwise the error is [ErrConflict]: another writer has written meanwhile, so read what
	// it wrote, and decide again. Data that [Parse] refuses is an error, and never written. After
	// any other error the document may have been written nevertheless.
	//
	// The result is the revision of what was written, or "" if the store doesn't say. Whoever
	// watches the source loads the rules: writing them puts none in force.
	Write(ctx context.Context, data []byte, after string) (revision string, err error)
}

// Document is a rule file as a [Source] has it.
type Document struct {
	Data []byte
	// Revision distinguishes the versions of the document. It is never "", has no order, and means
	// something to its source only.
	Revision string
}

// The errors of a [Source] and a [Writer] that errors.Is finds.
var (
	// ErrUnchanged is returned by Next if the document still has the revision that it was given.
	ErrUnchanged = errors.New("unchanged")
	// ErrNotFound says that there is no document, which doesn't mean that there are no rules.
	ErrNotFound = errors.New("there is no such document")
	// ErrConflict is returned by Write if the document isn't the one that was to be replaced.
	ErrConflict = errors.New("the document has changed since it was read")
)
