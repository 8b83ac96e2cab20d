// Command compare gives every kind of window the same traffic, and shows the admitted calls, the
// cost of a decision, and the effect of setting the clock.
//
//	go run ./windows/compare          print
//	go run ./windows/compare -write   keep the table of traffic and the picture in docs
package main
