// Package memory proves that names which outsiders choose cost no more memory than
// the caps allow, however many come, and that limits hold beyond the caps.
//
// Each flood starts on an engine whose caps are full of nodes in use, notes the heap
// in use after a collection, sends its names, and compares. The clock stands still,
// so that every new name finds no place, or moves, so that nodes age out and new
// ones come. Beside the heap the tests count: what the overflow admitted, the nodes
// of every kind, the searches for idle ones.
package memory
