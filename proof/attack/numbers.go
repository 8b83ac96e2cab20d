package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/rules"
)

// numbersInFiles writes numbers that are hard to read, and compares what is read.
func numbersInFiles(r *round) error {
	digits := func(n int) string {
		var b strings.Builder
		for range 1 + r.IntN(n) {
			b.WriteByte(byte('0' + r.IntN(10)))
		}
		return b.String()
	}
	for range 20 {
		text := pick(r, digits(3), "0", "1") + pick(r, "", "."+digits(20), ".0") + pick(r, "", "e"+pick(r, "", "+", "-")+digits(3))
		r.offered.Add(1)
		r.checked.Add(1)
		set, err := rules.Parse("", []byte("flow:\n  - {resource: orders, threshold: "+text+"}\n"))
		if err != nil {
			continue
		}
		want, err := strconv.ParseFloat(text, 64)
		got := set.Flow[0].Threshold
		zero := strings.Trim(strings.SplitN(text, "e", 2)[0], "0.") == ""
		switch {
		case err != nil || got != want || math.IsInf(got, 0):
			return fmt.Errorf("threshold: %s is read as %v", text, got)
		case got == 0 && !zero:
			return fmt.Errorf("threshold: %s is read as 0, which refuses everything", text)
		}
	}
	return nil
}
