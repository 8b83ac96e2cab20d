package slots

import "github.com/penstock-go/penstock/internal/engine"

// nodeSelector finds the place of a call in the tree: the node of its context and resource, below
// the enclosing call.
type nodeSelector struct{}

// Name returns "nodeSelector".
func (nodeSelector) Name() string { return "nodeSelector" }

// Prepare places the call.
func (nodeSelector) Prepare(inv *engine.Invocation) { inv.Place() }

// clusterBuilder finds the nodes of the resource and of the caller, and for an inbound call the
// inbound root.
type clusterBuilder struct{}

// Name returns "clusterBuilder".
func (clusterBuilder) Name() string { return "clusterBuilder" }

// Prepare adds the nodes.
func (clusterBuilder) Prepare(inv *engine.Invocation) { inv.PlaceCluster() }
