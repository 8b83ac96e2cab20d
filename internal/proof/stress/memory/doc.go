// Package memory proves that names chosen by outsiders cost no more memory than the caps allow,
// regardless of their number, and that limits hold beyond the caps.
//
// Each flood starts on an engine whose caps are full of nodes in use, measures the heap after a
// collection, sends its names, and compares. The clock stands still, so that no new name gets a
// node, or moves, so that nodes age out and new ones are created. Besides the heap, the tests count
// the calls that the overflow admitted, the nodes of every kind, and the searches for idle ones.
package memory
