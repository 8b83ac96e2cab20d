// Package rules reads rule files, writes them and watches them.
//
// A [Set] holds the rules of every family, one field each. [Parse] makes one
// from text, [Load] from a file, and [Watch] keeps applying a file as it
// changes. This is a file with every field of a flow rule; all but resource
// and threshold may be left out:
//
//	flow:
//	  - id: orders                # made from the fields when absent
//	    resource: GET /orders
//	    match: exact              # or prefix, path, regex
//	    exclude: [GET /health]    # prefix, path and "*": names that it is not about
//	    threshold: 100            # per interval (qps) or at once (concurrency)
//	    interval: 1s              # 10ms to 24h
//	    buckets: 2                # default 2 for a plain interval of 1s, 10 otherwise and for strict
//	    metric: qps               # or concurrency
//	    origin: default           # or other, or a caller's name
//	    relation: direct          # or associated, chain
//	    ref: POST /orders         # associated: a resource; chain: a context
//	    behavior: reject          # or warmUp, throttle, warmUpThrottle, tokenBucket
//	    warmUpPeriod: 10s
//	    coldFactor: 3
//	    maxWait: 500ms            # throttle: the longest queueing time
//	    burst: 20                 # tokenBucket: units at once beyond the one that is due
//	    memoryThreshold: 10       # what the threshold falls to as memory is used
//	    lowMemory: 0.5            # up to here it stands; a share, or bytes as in 512MiB
//	    highMemory: 0.9           # from here on it is memoryThreshold
//	    strict: false
//	    mode: enforce             # or shadow, off
//
// JSON with the same keys is read too. Reading is strict and all or nothing:
// what isn't understood is refused with its file, line and column, and never
// skipped. A file that is missing, empty or says null is an error and not an
// empty set; `flow: []` removes every rule.
//
//	rules.yaml:7:5: flow[0].treshold: unknown field (did you mean "threshold"?)
//
// Files of alibaba/Sentinel and of sentinel-golang are read as well, and told from native ones
// by their keys; see [Dialect] and [ParseWith].
//
// Editors learn the keys, their types and their ranges from [Schema].
//
// Importing the package starts nothing.
package rules
