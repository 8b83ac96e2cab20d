package sentinel

import (
	"errors"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core/spec"
)

// JavaCluster is a ClusterFlowConfig, or a ParamFlowClusterConfig.
type JavaCluster struct {
	FlowID                  ID    `yaml:"flowId,omitempty"`
	ThresholdType           int   `yaml:"thresholdType,omitempty"` // 0 for each member, 1 for all of them
	FallbackToLocalWhenFail Maybe `yaml:"fallbackToLocalWhenFail,omitempty"`
	SampleCount             int   `yaml:"sampleCount,omitempty"`
	WindowIntervalMs        int   `yaml:"windowIntervalMs,omitempty"`

	// What concerns Sentinel's token server only.
	Strategy                int `yaml:"strategy,omitempty"`
	ResourceTimeout         int `yaml:"resourceTimeout,omitempty"`
	ResourceTimeoutStrategy int `yaml:"resourceTimeoutStrategy,omitempty"`
	AcquireRefuseStrategy   int `yaml:"acquireRefuseStrategy,omitempty"`
	ClientOfflineTime       int `yaml:"clientOfflineTime,omitempty"`
}

// Maybe is true, false, or not said.
type Maybe struct{ said, is bool }

// Scalar returns what a file says.
func (m Maybe) Scalar() any { return m.is }

// SetScalar reads what a file says.
func (m *Maybe) SetScalar(v any) error {
	is, ok := v.(bool)
	if !ok {
		return errors.New("must be true or false")
	}
	*m = Maybe{true, is}
	return nil
}

// shared is what a rule with clusterMode shares, under an ID that all members make alike. falls is what
// fallbackToLocalWhenFail is where a file says nothing.
func (c *JavaCluster) shared(falls bool) (id string, r cluster.Rule, err error) {
	if c == nil || c.FlowID == "" || c.FlowID[0] == '-' {
		return "", r, spec.BadField("clusterConfig", "needs flowId, a number from 1 on, by which all members know the rule: Sentinel drops a rule without")
	}
	scopes := []cluster.Scope{cluster.PerMember, cluster.Global}
	if c.ThresholdType < 0 || c.ThresholdType >= len(scopes) {
		return "", r, spec.BadField("clusterConfig", "has thresholdType %d: use 0 for a threshold for each member, or 1 for one that all have together", c.ThresholdType)
	}
	if c.FallbackToLocalWhenFail.said {
		falls = c.FallbackToLocalWhenFail.is
	}
	if r = (cluster.Rule{Scope: scopes[c.ThresholdType], OnFailure: cluster.Open}); falls {
		r.OnFailure = cluster.Local
	}
	return "flowId-" + string(c.FlowID), r, nil
}

// window is the interval that the cluster counts in, and in how many buckets.
func (c *JavaCluster) window() (interval time.Duration, buckets int) {
	interval, buckets = time.Second, cluster.Buckets
	if c.WindowIntervalMs != 0 {
		interval = period(c.WindowIntervalMs, time.Millisecond)
	}
	if c.SampleCount != 0 {
		buckets = c.SampleCount
	}
	return interval, buckets
}
