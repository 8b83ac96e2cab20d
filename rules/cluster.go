package rules

import (
	"net/url"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core/spec"
)

// Cluster says where the members of a cluster share the limits of rules that have `cluster:`. A file
// says it in one mapping, as
//
//	cluster: {redis: "rediss://cache.internal:6379/0", namespace: shop, members: 12}
//
// and at most one of all sources may say it.
type Cluster struct {
	// Redis is the URL of the store. Its scheme names what opens it, see api.Config.Stores. A password
	// is a variable of the environment, as in rediss://app:$REDIS_PASSWORD@cache.internal:6379/0.
	// Empty is the store that the program has in api.Config.Cluster.
	Redis string `yaml:"redis,omitempty"`
	// Namespace keeps the limits of programs apart that have one store. If empty, that of
	// api.Config.Cluster is used.
	Namespace string `yaml:"namespace,omitempty"`
	// Members is how many members there are expected to be. It counts while the store is away, if more have not
	// been seen. 0 to 1,048,576; 0 means unknown.
	Members int `yaml:"members,omitempty"`
}

// MaxMembers is the highest Cluster.Members.
const MaxMembers = 1 << 20

// Normalized returns the same, or the first field that can't be honoured as a [spec.FieldError].
func (c Cluster) Normalized() (Cluster, error) {
	if c.Members < 0 || c.Members > MaxMembers {
		return c, spec.BadField("members", "is %d: use a number from 1 to %d, or leave it out", c.Members, MaxMembers)
	}
	if err := spec.CheckName("namespace", c.Namespace); err != nil {
		return c, err
	}
	if strings.ContainsAny(c.Namespace, "{}") {
		return c, spec.BadField("namespace", "has a brace, which has a meaning in the names of keys: use letters, digits, dots and dashes")
	}
	if c.Redis == "" {
		return c, nil
	}
	u, err := url.Parse(c.Redis)
	if err != nil || u.Scheme == "" {
		return c, spec.BadField("redis", "is no URL: write it as in redis://cache.internal:6379/0") // err would show a password
	}
	if password, ok := u.User.Password(); ok && !strings.HasPrefix(password, "$") {
		return c, spec.BadField("redis", "has a password, and rules are shown to whoever may read them: name a variable of the environment instead, as in redis://:$REDIS_PASSWORD@cache.internal:6379/0")
	}
	return c, nil
}

// Shared reports whether some of the rules have limits that a cluster shares.
func (s Set) Shared() bool {
	return slices.ContainsFunc(families, func(f family) bool { return f.shared(&s) })
}

// clusterID is its ID: there is one at most.
const clusterID = "cluster"

// Info has the ID, and no resource of its own.
func (c Cluster) Info() spec.Info { return spec.Info{ID: clusterID, Resource: spec.AnyResource} }

// Like is the same for all.
func (c Cluster) Like() string { return clusterID }
