// Package rules reads rule files, writes them and watches them.
//
// A [Set] holds the rules of every family, one field each. [Parse] makes one
// from text, [Load] from a file, and [Watch] keeps applying a file as it
// changes. This is a file with every field of a flow rule; all but resource
// and threshold may be left out:
//
//	flow:
//	  - id: orders                # derived from the fields if left out
//	    resource: GET /orders
//	    match: exact              # the default; or prefix, path, regex
//	    threshold: 100            # per interval (qps), or at once (concurrency)
//	    interval: 1s              # the default; 10ms to 24h
//	    buckets: 50               # the default; 2 or 10 with strict: false
//	    metric: qps               # the default; or concurrency
//	    origin: default           # the default; or other, or a caller's name
//	    relation: direct          # the default; or associated, chain
//	    behavior: reject          # the default; or warmUp, throttle, warmUpThrottle, tokenBucket
//	    strict: true              # the default
//	    memoryThreshold: 10       # the threshold from highMemory on
//	    lowMemory: 0.5            # full threshold up to here; a share, or bytes as in 512MiB
//	    highMemory: 0.9           # memoryThreshold from here on
//	    mode: enforce             # the default; or shadow, off
//	  - resource: GET /orders/*
//	    match: path
//	    exclude: [GET /orders/me] # prefix, path and "*": names that it does not apply to
//	    threshold: 20
//	    relation: chain
//	    ref: web                  # chain: a context; associated: a resource
//	    behavior: warmUpThrottle
//	    warmUpPeriod: 10s         # the default
//	    coldFactor: 3             # the default
//	    maxWait: 500ms            # the default
//	  - resource: GET /search
//	    threshold: 20
//	    behavior: throttle
//	    share: {by: param tenant} # tenants take turns, see api.Share
//	    shed: levels              # and the highest criticality comes first, see api.Criticality
//	  - resource: POST /mails
//	    threshold: 5
//	    refusal: {status: 503}    # what adapters respond with to refused requests, see api.Response
//	    behavior: tokenBucket
//	    burst: 20                 # units at once beyond the one that is due
//	  - resource: POST /chat
//	    threshold: 90000
//	    interval: 1m
//	    unit: tokens              # what the calls cost, see api.Cost; calls if left out
//	    estimate: 800             # of a call that names no cost; without it, the rule ignores such calls
//	    maxReserve: 8000          # the maximum that a call reserves; the rest is charged afterwards
//	    maxOverdraft: 0.25        # charges beyond the limit, as a share of it; no bound if left out
//	    notify: [80%, 100%]       # report when use reaches these shares, see api.Guard.OnNotice
//	  - resource: POST /translate
//	    threshold: 10000
//	    per: month                # a quota of each day, week or month, in place of an interval
//	    timezone: Europe/Berlin   # UTC if left out
//	    starts: "15 06:00"        # midnight, monday or the first if left out
//	  - resource: "*"             # with together: all inbound calls
//	    together: true            # one limit for all names, besides other rules; not one for each
//	    metric: concurrency
//	    threshold: 200
//	  - id: reports
//	    resource: GET /reports
//	    threshold: 5
//	    cluster: {}               # the processes of a cluster share it, see api.Config.Cluster
//
// JSON with the same keys is read too. Reading is strict and all or nothing:
// what isn't understood is refused with its file, line and column, and never
// skipped. A file that is missing, empty or says null is an error and not an
// empty set; `flow: []` removes every rule.
//
//	rules.yaml:7:5: flow[0].treshold: unknown field (did you mean "threshold"?)
//
// Files of alibaba/Sentinel and of sentinel-golang are read as well, and distinguished from native ones
// by their keys; see [Dialect] and [ParseWith].
//
// Editors learn the keys, their types and their ranges from [Schema].
//
// Importing the package starts nothing.
//
// The page docs/rules/files.md has more on rule files.
package rules
