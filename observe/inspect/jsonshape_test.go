package inspect_test

import (
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/observe/inspect"
)

// jsonNode is the shape that a reader of the JSON expects.
type jsonNode struct {
	Escaped              string
	Name                 string
	Kind                 inspect.NodeKind
	Overflow             bool
	PassPerSecond        float64
	BlockPerSecond       float64
	TotalPerSecond       float64
	CompletePerSecond    float64
	ExceptionPerSecond   float64
	OccupiedPerSecond    float64
	AvgRTMs              float64
	MinRTMs              *float64
	MaxCompletePerBucket int64
	MaxCompletePerSecond float64
	InFlight             int64
	Waiting              int64

	Second, LastSecond, Minute, Lifetime jsonCounts

	Children []jsonNode
	Origins  []jsonNode
	Details  []jsonBreaker
	Units    []core.UnitStats
}

type jsonBreaker struct {
	Kind, Rule, Resource, Endpoint, Mode, State string
	Since, RetryAt                              time.Time
	Why                                         string
	Trip                                        breaker.Trip
	Calls, Bad                                  int64
	Probes                                      int
}

type jsonCounts struct {
	Pass, Block, Total, Complete, Exception, Occupied, Entered, Exited int64
	RTMs                                                               float64
	MinRTMs                                                            *float64
}

type jsonTree struct {
	At       time.Time
	Waiting  int64
	Failures int64
	Leaked   int64
	Caps     struct {
		Resources, Contexts, Calls, Origins inspect.Usage
	}
	Root      jsonNode
	Resources []jsonNode
	Inbound   jsonNode
	Rules     []jsonRule
}

type jsonRule struct {
	Kind, ID, Resource, Mode string
	Asked                    bool
	Refused, ShadowBlocked   int64
	Details                  jsonDetails
	Lines                    []string
	Marks                    []struct {
		Resource, Text string
		Urgency        int
	}
}

// jsonDetails are the details of the rules of every kind.
type jsonDetails struct {
	Threshold, Memory    float64
	Values               int
	InFlight, Overflowed int64
	Top                  []jsonValue
	Limits               []jsonLimit
	Endpoints            int
	NotJudged            int64
	States               map[string]int
}

type jsonLimit struct {
	Resource                                  string
	Limit, InForce                            int64
	FloorRTMs, LimitRTMs, ThroughputPerSecond float64
}

type jsonValue struct {
	Resource, Value           string
	Passed, Refused, InFlight int64
	Measure                   struct {
		Of              string
		Measured, Limit float64
		Remaining       *int64
	}
}
