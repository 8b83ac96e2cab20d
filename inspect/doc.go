// Package inspect shows what an engine counts: as values, as text, as JSON and
// over HTTP. It only reads.
//
// [Snapshot] copies the whole tree of nodes:
//
//	inspect.Snapshot(engine).WriteText(os.Stdout)
//
//	machine-root
//	└─ http                     pass 98/s  block 12/s  rt 3.1ms  in-flight 4
//	   └─ GET /orders           pass 98/s  block 12/s  rt 3.1ms  in-flight 4
//	      └─ sql orders.select  pass 98/s  block 0/s   rt 1.2ms  in-flight 1
//
// [Tree.WriteSentinel] writes the same in the words of alibaba/Sentinel's tree
// command, [Tree.MarshalJSON] for programs. [Handler] serves all of it.
//
// Names of resources, contexts and callers may come from outside. In text, what a
// terminal would obey is escaped and what is too long is cut, so one node is one
// line whatever its name.
package inspect
