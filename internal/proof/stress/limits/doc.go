// Package limits checks limits against an independent book: 64 callers, a hundred million entries,
// and never one too many nor one too few.
package limits
