package main

import (
	"regexp"
	"time"

	"github.com/penstock-go/penstock/core/spec"
)

// shape is the shape of a window, as docs/rules/flow.md describes it.
type shape struct {
	interval time.Duration
	buckets  int
	strict   bool
}

func (s shape) width() int64 { return int64(s.interval) / int64(s.buckets) }

// span returns how many buckets count at a time.
func (s shape) span() int64 {
	if s.strict {
		return int64(s.buckets) + 1
	}
	return int64(s.buckets)
}

// number returns the number of the bucket in which a time lies.
func (s shape) number(t int64) int64 {
	n := t / s.width()
	if t%s.width() < 0 {
		n--
	}
	return n
}

// about returns a function that reports whether a rule applies to a resource.
func about(name string, match spec.Match) func(resource string) bool {
	if match == spec.MatchExact {
		return func(resource string) bool { return resource == name }
	}
	return regexp.MustCompile("(?s)^(?:" + name + ")$").MatchString
}
