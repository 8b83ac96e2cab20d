// Package inspect shows an engine's counts: as values, as text, as JSON and over HTTP. It only
// reads.
//
// [Snapshot] copies the whole tree of nodes:
//
//	inspect.Snapshot(engine).WriteText(os.Stdout)
//
//	                            last second         last minute             in
//	machine-root                pass  block     rt  pass  block     rt  flight
//	└─ http                       98     12  3.1ms  5873    719  3.4ms       4
//	   └─ GET /orders             98     12  3.1ms  5873    719  3.4ms       4
//	      └─ sql orders.select    98      0  1.2ms  5873      0  1.3ms       1
//
// [Tree.WriteSentinel] writes the tree like alibaba/Sentinel's tree command, [Tree.MarshalJSON] for
// programs. [Handler] serves all formats.
//
// Names of resources, contexts and callers may come from outside. In text, terminal control
// characters are escaped and long names are cut, so each node is on a single line.
//
// The page docs/metrics.md explains the counts.
package inspect
