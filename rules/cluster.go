package rules

import (
	"net/url"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core/spec"
)

// Cluster configures where the members of a cluster share the limits of rules that have `cluster:`.
// At most one of all
// sources may have it, in one mapping:
//
//	cluster: {redis: "rediss://cache.internal:6379/0", namespace: shop, members: 12}
type Cluster struct {
	// Redis is the URL of the store. Its scheme selects the function that opens it; see
	// api.Config.Stores. A password is given as an environment variable, as in
	// rediss://app:$REDIS_PASSWORD@cache.internal:6379/0. Empty means the store in
	// api.Config.Cluster.
	Redis string `yaml:"redis,omitempty"`
	// Namespace separates the limits of programs that share a store. If empty, that of
	// api.Config.Cluster is used.
	Namespace string `yaml:"namespace,omitempty"`
	// Members is the expected number of members. It is used while the store is unreachable, unless
	// more members have been seen. 0 to 1,048,576; 0 means unknown.
	Members int `yaml:"members,omitempty"`
}

// MaxMembers is the highest Cluster.Members.
const MaxMembers = 1 << 20

// Normalized returns c unchanged. It returns a [spec.FieldError] for the first invalid field.
func (c Cluster) Normalized() (Cluster, error) {
	if c.Members < 0 || c.Members > MaxMembers {
		return c, spec.BadField("members", "is %d: use a number from 1 to %d, or leave it out", c.Members, MaxMembers)
	}
	if err := spec.CheckName("namespace", c.Namespace); err != nil {
		return c, err
	}
	if strings.ContainsAny(c.Namespace, "{}") {
		return c, spec.BadField("namespace", "has a brace, which has a special meaning in key names: use letters, digits, dots and dashes")
	}
	if c.Redis == "" {
		return c, nil
	}
	u, err := url.Parse(c.Redis)
	if err != nil || u.Scheme == "" {
		return c, spec.BadField("redis", "is not a URL: write it as in redis://cache.internal:6379/0") // err would show a password
	}
	if password, ok := u.User.Password(); ok && !strings.HasPrefix(password, "$") {
		return c, spec.BadField("redis", "contains a password, which everyone who can read the rules would see: name an environment variable instead, as in redis://:$REDIS_PASSWORD@cache.internal:6379/0")
	}
	return c, nil
}

// Shared reports whether some of the rules have limits that a cluster shares.
func (s Set) Shared() bool {
	return slices.ContainsFunc(families, func(f family) bool { return f.shared(&s) })
}

// clusterID is the ID of the only Cluster in a Set.
const clusterID = "cluster"

// Info returns the ID; a Cluster names no resource.
func (c Cluster) Info() spec.Info { return spec.Info{ID: clusterID, Resource: spec.AnyResource} }

// Like is the same for all Clusters.
func (c Cluster) Like() string { return clusterID }
