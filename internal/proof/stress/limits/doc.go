// Package limits holds limits against a book that is kept beside them: 64 callers, a
// hundred million entries, and never one too many nor one too few.
package limits
