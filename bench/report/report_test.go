package report_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/bench/report"
	"github.com/penstock-go/penstock/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

func TestTable(t *testing.T) {
	table := report.NewTable("WHAT", "ns", "×")
	table.Row("", "short", "1.00", "2.00")
	table.Row("a note", "a name that is longer than the room that the other columns leave it on a line", "12,345", "2.00")
	assert.Equal(t, ""+
		"WHAT                                                                    ns     ×\n"+
		"  short                                                               1.00  2.00\n"+
		"  a name that is longer than the room that the other columns leave  12,345  2.00\n"+
		"    it on a line\n"+
		"      a note\n", table.String())

	long := report.NewTable("A TITLE THAT IS LONGER THAN THE ROOM THAT THERE IS FOR IT BESIDE COLUMNS", "ns", "×")
	long.Row("", "short", "1.00", "2.00")
	assert.Equal(t, ""+
		"A TITLE THAT IS LONGER THAN THE ROOM THAT THERE IS FOR IT BESIDE COLUMNS\n"+
		"                                                                        ns     ×\n"+
		"  short                                                               1.00  2.00\n", long.String())
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.00", 0.123: "0.12", 9.994: "9.99", 9.996: "10.0", 99.94: "99.9", 99.96: "100", 1234567: "1,234,567", -12.34: "-12.3", -1234: "-1,234",
	} {
		assert.Equal(t, want, report.Number(v), "%v", v)
	}
}
