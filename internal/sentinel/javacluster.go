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
	ThresholdType           int   `yaml:"thresholdType,omitempty"` // 0 for each member, 1 for all together
	FallbackToLocalWhenFail Maybe `yaml:"fallbackToLocalWhenFail,omitempty"`
	SampleCount             int   `yaml:"sampleCount,omitempty"`
	WindowIntervalMs        int   `yaml:"windowIntervalMs,omitempty"`

	// Used by Sentinel's token server only.
	Strategy                int `yaml:"strategy,omitempty"`
	ResourceTimeout         int `yaml:"resourceTimeout,omitempty"`
	ResourceTimeoutStrategy int `yaml:"resourceTimeoutStrategy,omitempty"`
	AcquireRefuseStrategy   int `yaml:"acquireRefuseStrategy,omitempty"`
	ClientOfflineTime       int `yaml:"clientOfflineTime,omitempty"`
}

// Maybe is true, false, or unset.
type Maybe struct{ set, is bool }

// Scalar returns the value as written in a file.
func (m Maybe) Scalar() any { return m.is }

// SetScalar sets m to a value from a file.
func (m *Maybe) SetScalar(v any) error {
	is, ok := v.(bool)
	if !ok {
		return errors.New("must be true or false")
	}
	*m = Maybe{true, is}
	return nil
}

// shared returns the ID and the cluster part of a rule with clusterMode. All members derive the same
// ID. falls is the default of fallbackToLocalWhenFail.
func (c *JavaCluster) shared(falls bool) (id string, r cluster.Rule, err error) {
	if c == nil || c.FlowID == "" || c.FlowID[0] == '-' {
		return "", r, spec.BadField("clusterConfig", "needs flowId, a number of at least 1, which identifies the rule on all members: Sentinel drops a rule without one")
	}
	scopes := []cluster.Scope{cluster.PerMember, cluster.Global}
	if c.ThresholdType < 0 || c.ThresholdType >= len(scopes) {
		return "", r, spec.BadField("clusterConfig", "has thresholdType %d: use 0 for a threshold per member, or 1 for a global one", c.ThresholdType)
	}
	if c.FallbackToLocalWhenFail.set {
		falls = c.FallbackToLocalWhenFail.is
	}
	if r = (cluster.Rule{Scope: scopes[c.ThresholdType], OnFailure: cluster.Open}); falls {
		r.OnFailure = cluster.Local
	}
	return "flowId-" + string(c.FlowID), r, nil
}

// window returns the cluster's counting interval and its number of buckets.
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
