package main

import (
	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/outlier"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/rules/gateway"
	"github.com/penstock-go/penstock/stat"
	"github.com/penstock-go/penstock/system"
	"github.com/penstock-go/penstock/upstream"
)

// span is the range of a number. If the least is above 0, 0 is allowed too: it means the default.
type span struct{ least, most float64 }

// spans are the ranges of the fields that are numbers, by the family's key and the field's.
var spans = map[string]span{
	"status": {spec.MinStatus, spec.MaxStatus},

	"flow.threshold":       {0, flow.MaxThreshold},
	"flow.buckets":         {0, stat.MaxBuckets},
	"flow.coldFactor":      {2, flow.MaxColdFactor},
	"flow.burst":           {0, flow.MaxCostBurst},
	"flow.estimate":        {0, flow.MaxCost},
	"flow.maxReserve":      {0, flow.MaxCost},
	"flow.maxOverdraft":    {0, flow.MaxMaxOverdraft},
	"flow.memoryThreshold": {0, flow.MaxThreshold},

	"cluster.members": {0, rules.MaxMembers},

	"hotspot.threshold":            {0, hotspot.MaxThreshold},
	"hotspot.estimate":             {0, flow.MaxCost},
	"hotspot.maxReserve":           {0, flow.MaxCost},
	"hotspot.maxOverdraft":         {0, flow.MaxMaxOverdraft},
	"hotspot.burst":                {0, flow.MaxCostBurst},
	"hotspot.maxValues":            {0, hotspot.MaxMaxValues},
	"hotspot.exceptions.threshold": {0, hotspot.MaxThreshold},
	"hotspot.plans":                {0, hotspot.MaxThreshold},
	"hotspot.lockout.after":        {1, hotspot.MaxLockoutAfter},

	"system.threshold": {0, system.MaxThreshold},
	"system.buckets":   {0, stat.MaxBuckets},

	"isolation.threshold":  {0, isolation.MaxCostThreshold},
	"isolation.estimate":   {0, flow.MaxCost},
	"isolation.maxReserve": {0, flow.MaxCost},
	"isolation.maxQueue":   {0, isolation.MaxMaxQueue},

	"flow.share.weights":       {1, spec.MaxWeight},
	"flow.share.perShareQueue": {0, flow.MaxPerShareQueue},
	"flow.share.maxShares":     {0, spec.MaxMaxShares},

	"isolation.share.weights":       {1, spec.MaxWeight},
	"isolation.share.perShareQueue": {0, isolation.MaxMaxQueue},
	"isolation.share.maxShares":     {0, spec.MaxMaxShares},

	"adaptive.floor":   {0, adaptive.MaxCeiling},
	"adaptive.ceiling": {0, adaptive.MaxCeiling},
	"adaptive.start":   {0, adaptive.MaxCeiling},

	"upstream.retries.share": {0, 1},
	"upstream.retries.least": {0, upstream.MaxLeast},
	"upstream.throttle.k":    {1, upstream.MaxK},

	"breaker.threshold": {0, breaker.MaxThreshold},
	"breaker.minCalls":  {0, breaker.MaxMinCalls},
	"breaker.buckets":   {0, stat.MaxBuckets},
	"breaker.probes":    {0, breaker.MaxProbes},

	"gateway.threshold": {0, max(flow.MaxThreshold, hotspot.MaxThreshold)},
	"gateway.burst":     {0, hotspot.MaxBurst},
	"gateway.maxValues": {0, hotspot.MaxMaxValues},

	"outlier.maxEjected":   {0, 1},
	"outlier.maxEndpoints": {2, outlier.MaxMaxEndpoints},
	"outlier.threshold":    {0, breaker.MaxThreshold},
	"outlier.minCalls":     {0, breaker.MaxMinCalls},
	"outlier.buckets":      {0, stat.MaxBuckets},
	"outlier.probes":       {0, breaker.MaxProbes},
}

// The lengths of texts and lists. The loader counts bytes, at least one for each character.
var (
	shortest = map[string]int{
		"resource": 1, "groups.id": 1, "groups.paths": 1, "groups.paths.path": 1, "authority.origins": 1, "authority.origins.": 1, "exclude.": 1, // with a dot at the end: their items
	}
	longest = map[string]int{
		"body": spec.MaxBody, "exclude.": pattern.MaxName, "authority.origins.": pattern.MaxName, "resource": pattern.MaxName,
		"flow.origin": pattern.MaxName, "flow.ref": pattern.MaxName, "flow.unit": flow.MaxUnit, "hotspot.unit": flow.MaxUnit, "isolation.unit": flow.MaxUnit,
		"groups.id": pattern.MaxName, "groups.paths": gateway.MaxPaths, "groups.paths.path": pattern.MaxName,
		"gateway.route": pattern.MaxName, "gateway.group": pattern.MaxName, "gateway.name": pattern.MaxName, "gateway.value": pattern.MaxName,
		"hotspot.exceptions": hotspot.MaxExceptions, "hotspot.exceptions.value": argument.MaxText, "hotspot.exceptions.values": argument.MaxText,
		"flow.notify": flow.MaxNotify, "hotspot.notify": hotspot.MaxNotify,
		"hotspot.keys": hotspot.MaxKeys, "hotspot.keys.": pattern.MaxName + len("param "),
	}
)

// patterns are expressions that the values of fields match.
var patterns = map[string]string{ // with a dot at the end: of their items
	"flow.share.by": `^(origin|param \S(.*\S)?)$`, "flow.share.weightBy": `^(origin|param \S(.*\S)?|)$`,
	"isolation.share.by": `^(origin|param \S(.*\S)?)$`, "isolation.share.weightBy": `^(origin|param \S(.*\S)?|)$`,
	"hotspot.keys.": `^(origin|resource|param \S(.*\S)?|arg (0|-?([1-9][0-9]{0,2}|1000)))$`,
	"flow.notify.":  aPercent, "hotspot.notify.": aPercent,
	"flow.unit": aUnit, "hotspot.unit": aUnit, "isolation.unit": aUnit,
}

// The starts of periods.
const (
	aTime       = `([01][0-9]|2[0-3]):[0-5][0-9]`
	startOfDay  = `^(` + aTime + `|)$`
	startOfWeek = `^((monday|tuesday|wednesday|thursday|friday|saturday|sunday)( ` + aTime + `)?|)$`
	startMonth  = `^(([1-9]|[12][0-9]|3[01])( ` + aTime + `)?|)$`
)

// quotas are the cases of the families whose rules may have quotas.
var quotas = []when{
	{"per", []string{"day"}, []clause{{fields: []string{"starts"}, must: matching, value: startOfDay}}},
	{"per", []string{"week"}, []clause{{fields: []string{"starts"}, must: matching, value: startOfWeek}}},
	{"per", []string{"month"}, []clause{{fields: []string{"starts"}, must: matching, value: startMonth}}},
	{"per", []string{"day", "week", "month"}, []clause{rejectOnly, noInterval, notFalse, {fields: []string{"metric"}, must: oneOf, value: []string{"qps"}}}},
}

const (
	aUnit    = `^[A-Za-z0-9._-]*$`
	aPercent = `^([1-9][0-9]?|100)%$`
)

// A case is a condition on a field's value, and what must hold then. An absent field matches if its
// default is one of the values.
type when struct {
	field  string
	values []string
	then   []clause
}

// clause is a demand on some fields.
type clause struct {
	fields []string
	must   demand
	value  any // of most, above and below
}

type demand int

const (
	unread   demand = iota // be absent, or have the value that being absent means
	needed                 // be present
	stated                 // be present with a non-zero value
	oneOf                  // be one of the values
	most                   // be at most the value
	inside                 // be above 0, and at most the value if there is one
	below                  // be below the value
	empty                  // be an empty list, or absent
	matching               // match the expression
	other                  // be another value
	lacking                // be a list without an exception for the value
)

var (
	noWindow     = clause{fields: []string{"buckets", "strict"}, must: unread}
	notFalse     = clause{fields: []string{"strict"}, must: unread}
	noWarmUp     = clause{fields: []string{"warmUpPeriod", "coldFactor"}, must: unread}
	noWait       = clause{fields: []string{"maxWait"}, must: unread}
	noBurst      = clause{fields: []string{"burst"}, must: unread}
	noMemory     = clause{fields: []string{"memoryThreshold", "lowMemory", "highMemory"}, must: unread}
	noShares     = clause{fields: []string{"share", "shed"}, must: unread}
	noUnit       = clause{fields: []string{"unit"}, must: unread}
	noOverdraft  = clause{fields: []string{"maxOverdraft"}, must: unread}
	noMaxReserve = clause{fields: []string{"maxReserve"}, must: unread}
	noInterval   = clause{fields: []string{"interval"}, must: unread}
	rejectOnly   = clause{fields: []string{"behavior"}, must: oneOf, value: []string{"reject"}}
	aShare       = clause{fields: []string{"threshold"}, must: most, value: 1}
	slowSaid     = clause{fields: []string{"slowRT"}, must: stated}
	noSlow       = clause{fields: []string{"slowRT"}, must: unread}
	anExpression = clause{fields: []string{"resource"}, must: other, value: spec.AnyResource}
	noExclude    = clause{fields: []string{"exclude"}, must: empty}
	noShed       = clause{fields: []string{"shed"}, must: unread}
	noFloors     = clause{fields: []string{"floors"}, must: unread}
	noTogether   = clause{fields: []string{"together"}, must: unread}
	noNotify     = clause{fields: []string{"notify"}, must: empty}
	noStatistics = clause{fields: []string{"minCalls", "interval", "buckets"}, must: unread}
)

// breakers are the cases of the two families that have breakers.
var breakers = []when{
	{"strategy", []string{"errorRatio"}, []clause{aShare, noSlow}},
	{"strategy", []string{"slowRatio"}, []clause{aShare, slowSaid}},
	{"strategy", []string{"errorCount"}, []clause{noSlow}},
	{"strategy", []string{"consecutiveErrors"}, []clause{noSlow, noStatistics}},
}

// cases are the combinations that the loader refuses even though each field is valid by itself, by
// family.
var cases = map[string][]when{
	"flow": append([]when{
		{"per", []string{"day", "week", "month"}, []clause{noWindow, noMemory,
			{fields: []string{"relation"}, must: oneOf, value: []string{"direct", "chain"}}, {fields: []string{"origin"}, must: other, value: flow.OriginOther}}},
		{"metric", []string{"concurrency"}, []clause{rejectOnly, noInterval, noWindow, noOverdraft}},
		{"behavior", []string{"reject"}, []clause{noWarmUp, noWait, noBurst}},
		{"behavior", []string{"warmUp"}, []clause{noWait, noBurst, noMemory, noUnit, noTogether}},
		{"behavior", []string{"throttle"}, []clause{noWindow, noWarmUp, noMaxReserve, noOverdraft}},
		{"behavior", []string{"reject", "warmUp", "warmUpThrottle", "tokenBucket"}, []clause{noShares}},
		{"behavior", []string{"warmUpThrottle"}, []clause{noWindow, noBurst, noMemory, noUnit, noTogether}},
		{"behavior", []string{"tokenBucket"}, []clause{noWindow, noWarmUp, noWait, noMemory}},
		{"behavior", []string{"warmUp", "throttle", "warmUpThrottle", "tokenBucket"}, []clause{noNotify}},
		{"metric", []string{"concurrency"}, []clause{noNotify}},
		{"relation", []string{"associated", "chain"}, []clause{noNotify}},
		{"relation", []string{"direct"}, []clause{{fields: []string{"ref"}, must: unread}}},
		{"relation", []string{"associated"}, []clause{
			{fields: []string{"ref"}, must: stated},
			noUnit, noTogether,
			{fields: []string{"behavior"}, must: oneOf, value: []string{"reject", "warmUp"}},
		}},
		{"relation", []string{"chain"}, []clause{{fields: []string{"ref"}, must: stated}}},
	}, quotas...),
	"hotspot": append([]when{
		{"per", []string{"day", "week", "month"}, []clause{noBurst}},
		{"metric", []string{"concurrency"}, []clause{rejectOnly, noInterval, noBurst, notFalse, noOverdraft}},
		{"behavior", []string{"reject", "tokenBucket"}, []clause{noWait}},
		{"behavior", []string{"throttle"}, []clause{notFalse, noMaxReserve, noOverdraft}},
		{"behavior", []string{"tokenBucket"}, []clause{notFalse}},
		{"behavior", []string{"throttle", "tokenBucket"}, []clause{noNotify}},
		{"metric", []string{"concurrency"}, []clause{noNotify}},
		{"missing", []string{"unlimited", "refuse"}, []clause{{fields: []string{"exceptions"}, must: lacking, value: ""}}},
	}, quotas...),
	"system": {
		{"metric", []string{"load", "cpu", "concurrency"}, []clause{noInterval, noWindow}},
		{"metric", []string{"rt"}, []clause{
			{fields: []string{"threshold", "strict"}, must: unread}, {fields: []string{"maxRT"}, must: stated},
		}},
		{"metric", []string{"rt", "concurrency", "qps"}, []clause{{fields: []string{"strategy"}, must: unread}}},
		{"metric", []string{"load", "cpu", "concurrency", "qps"}, []clause{
			{fields: []string{"threshold"}, must: needed}, {fields: []string{"maxRT"}, must: unread},
		}},
		{"metric", []string{"rt", "qps"}, []clause{noShed}},
		{"strategy", []string{"bbr", "gate"}, []clause{noShed}},
		{"shed", []string{"none"}, []clause{noFloors}},
		{"metric", []string{"load"}, []clause{{fields: []string{"threshold"}, must: inside}}},
		{"metric", []string{"cpu"}, []clause{{fields: []string{"threshold"}, must: inside}, {fields: []string{"threshold"}, must: below, value: 1}}},
	},
	"adaptive": {
		{"shed", []string{"none"}, []clause{noFloors}},
	},
	"isolation": {
		{"shed", []string{"levels"}, []clause{{fields: []string{"maxQueue"}, must: stated}}},
	},
	"authority": {
		{"list", []string{"deny", "black"}, []clause{{fields: []string{"allowAnonymous"}, must: unread}}},
	},
	"breaker": breakers,
	"outlier": breakers,
	"gateway": partsOfGateways,
}

// strictCases are further cases of a rule whose windows are strict, by family.
var strictCases = map[string][]when{
	"hotspot": {{"behavior", []string{"reject"}, []clause{noBurst}}},
	"gateway": {{"behavior", []string{"reject"}, []clause{noBurst}}},
}

// partsOfGateways are the cases of a gateway's rules.
var partsOfGateways = []when{
	{"param", []string{"none"}, []clause{{fields: []string{"name", "value", "valueMatch", "maxValues", "strict"}, must: unread}}},
	{"param", []string{"clientIP", "host"}, []clause{{fields: []string{"name"}, must: unread}}},
	{"param", []string{"header", "query", "cookie"}, []clause{{fields: []string{"name"}, must: stated}}},
	{"metric", []string{"concurrency"}, []clause{rejectOnly, noInterval, noBurst, notFalse}},
	{"behavior", []string{"reject", "tokenBucket"}, []clause{noWait}},
	{"behavior", []string{"throttle"}, []clause{notFalse}},
	{"behavior", []string{"tokenBucket"}, []clause{notFalse}},
}

// names are the cases of the families whose rules name resources.
var names = []when{
	{"match", []string{"regex"}, []clause{anExpression, noExclude}},
	{"regex", []string{"true"}, []clause{anExpression, noExclude}},
	{"match", []string{"prefix"}, []clause{{fields: []string{"resource"}, must: matching, value: `^[^*]+\*$`}}},
	{"match", []string{"path"}, []clause{
		{fields: []string{"resource"}, must: matching, value: `/`},
		{fields: []string{"resource"}, must: matching, value: `(^|/)\*(/|$)|^\* /`}, // a part that is a star
	}},
}

// partners are fields that only work together: if one of the first is set, all of the second must
// be.
var partners = map[string][][2][]string{
	"flow": {
		{{"memoryThreshold"}, {"lowMemory", "highMemory"}},
		{{"lowMemory"}, {"memoryThreshold", "highMemory"}},
		{{"highMemory"}, {"memoryThreshold", "lowMemory"}},
		{{"estimate"}, {"unit"}},
		{{"maxReserve"}, {"unit"}},
		{{"maxOverdraft"}, {"unit"}},
		{{"timezone"}, {"per"}},
		{{"starts"}, {"per"}},
	},
	"hotspot": {
		{{"limitsFromCode"}, {"id"}},
		{{"estimate"}, {"unit"}},
		{{"maxReserve"}, {"unit"}},
		{{"maxOverdraft"}, {"unit"}},
		{{"timezone"}, {"per"}},
		{{"starts"}, {"per"}},
	},
	"upstream": {
		{{"maxPause"}, {"obey"}},
		{{"scope"}, {"obey"}},
	},
	"isolation": {
		{{"maxQueue"}, {"maxWait", "threshold"}},
		{{"maxWait"}, {"maxQueue"}},
		{{"estimate"}, {"unit"}},
		{{"maxReserve"}, {"unit"}},
		{{"share"}, {"maxQueue"}},
	},
}
