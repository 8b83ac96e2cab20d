// Package starvation proves, by its tests, that callers whom a rule refuses cost
// others nothing, and that the books stay exact where callers are many and slow.
//
// Every kind of rule that refuses a crowd is paired with every kind of rule that the
// crowd shares with an honest few, in both orders. The rule they share has room for
// all that the honest ones want and for the little that the crowd is entitled to, so
// whenever it refuses an honest call, that is because of what a refused one held for
// an instant. All callers come at once, on a clock that stands still, round by round.
package starvation
