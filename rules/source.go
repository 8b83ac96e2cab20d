package rules

import (
	"context"
	"errors"
)

// A Source is a store of a rule file other than the file system. [Loader.WatchSource] watches it.
//
// Its methods may be called from several goroutines. Neither its name nor its errors may contain a
// password, a token or the like, since both are logged. A Source never closes a client that it was
// given: it belongs to the caller.
//
// An error can say when to retry by implementing
//
//	RetryAfter() time.Duration
//
// which [Loader.WatchSource] honours, up to five minutes.
type Source interface {
	// Name identifies the source in logs, errors and cache files. It never changes. If it ends in
	// .json, the document must be JSON.
	Name() string
	// Next returns the document as soon as its revision differs from after. With "" it returns the
	// document immediately. Otherwise it blocks until the revision changes, until ctx ends, or for
	// as long as it chooses; in the last case the error is [ErrUnchanged]. The error is
	// [ErrNotFound] if there is no such document. An empty document is not an error; the caller
	// decides about it. When ctx ends, Next must return.
	Next(ctx context.Context, after string) (Document, error)
}

// A Writer is a [Source] whose document can be replaced.
type Writer interface {
	// Write replaces the document with data if its revision is after; "" means that there is none
	// yet. Otherwise the error is [ErrConflict]: another writer has written in the meantime, so read
	// the new document and decide again. Data that [Parse] refuses is an error, and never written.
	// After any other error the document may still have been written.
	//
	// The result is the new revision, or "" if the store doesn't return it. Writing doesn't put the
	// rules into force; the watchers of the source load them.
	Write(ctx context.Context, data []byte, after string) (revision string, err error)
}

// Document is a rule file in a [Source].
type Document struct {
	Data []byte
	// Revision distinguishes the versions of the document. It is never "", has no order, and is
	// meaningful only to its source.
	Revision string
}

// The errors of a [Source] and a [Writer], for errors.Is.
var (
	// ErrUnchanged is returned by Next if the document still has the revision after.
	ErrUnchanged = errors.New("unchanged")
	// ErrNotFound reports that there is no document, which doesn't mean that there are no rules.
	ErrNotFound = errors.New("there is no such document")
	// ErrConflict is returned by Write if the document isn't at the revision to replace.
	ErrConflict = errors.New("the document has changed since it was read")
)
