// Package node defines the tree of nodes on which all calls are counted. Most programs don't
// import it.
//
//	machine-root                      the sum of everything
//	└─ EntranceNode "http"            one for each context
//	   └─ DefaultNode "GET /orders"   one for each (context, resource),
//	      └─ DefaultNode "sql"        below the node it was first called from
//
//	ClusterNode "GET /orders"         one for each resource, over all contexts
//	└─ OriginNode "mobile-app"        one for each caller of the resource
//
// A call is counted on its DefaultNode, its ClusterNode, its OriginNode if it names a caller, and
// the inbound root if it is inbound. A ClusterNode includes the first of its DefaultNodes, and a
// call there is written once for both ([DefaultNode.Joint]). Entrance and root have no counters of
// their own: they are the sums of their direct children.
//
// A node always counts (its [stat.Counters]). It meters only if a rule looks at it:
// [StatisticNode.Window] returns an exact window, [StatisticNode.NeedSemaphore] an exact count of
// units in flight.
//
// Memory is bounded. Resources, contexts, origins and call nodes each have a cap ([Caps]). At the
// cap idle nodes make room; if there are none, calls are counted on an overflow node, which limits
// as well: one for the resources, and for each resource at most one for its contexts and one for
// its callers, in addition to the caps. Names in rules don't count towards the caps.
package node
