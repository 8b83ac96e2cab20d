// Command compare gives every kind of window the same traffic, and says what came
// through, what a decision costs, and what happens when the clock is set.
//
//	go run ./bench/windows/compare          print
//	go run ./bench/windows/compare -write   keep tables and picture in docs
package main
