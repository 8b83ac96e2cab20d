// Package starvation proves, by its tests, that callers refused by a rule cost others nothing, and
// that the books stay exact with many and slow callers.
//
// Every kind of rule that refuses a crowd is paired with every kind of rule that the crowd shares
// with a few honest callers, in both orders. The shared rule has room for everything that the
// honest ones want and for the little that the crowd is entitled to, so if it refuses an honest
// call, the reason is units that a refused call held for an instant. In each round all callers call
// at once, on a clock that stands still.
package starvation
