package clocks_test

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

var start = time.Unix(1_700_000_000, 0)

func since(c *clocks.Manual) time.Duration { return time.Duration(c.Now() - start.UnixNano()) }
