package slots

import "github.com/penstock-go/penstock/core"

// NodeSelector finds the place of a call in the tree: the node of its context and resource, below
// the call it is nested in.
type NodeSelector struct{}

// Name is "nodeSelector".
func (NodeSelector) Name() string { return "nodeSelector" }

// Prepare places the call.
func (NodeSelector) Prepare(inv *core.Invocation) { inv.Place() }

// ClusterBuilder finds the nodes of the resource and of the caller, and for an
// inbound call the inbound root.
type ClusterBuilder struct{}

// Name is "clusterBuilder".
func (ClusterBuilder) Name() string { return "clusterBuilder" }

// Prepare adds the nodes.
func (ClusterBuilder) Prepare(inv *core.Invocation) { inv.PlaceCluster() }
