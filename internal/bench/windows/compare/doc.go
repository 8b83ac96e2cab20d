// Command compare gives every kind of window the same traffic, and says what came
// through, what a decision costs, and what happens when the clock is set.
//
//	go run ./windows/compare          print
//	go run ./windows/compare -write   keep the table of traffic and the picture in docs
package main
