package penstockhertz_test

import (
	"testing"

	"github.com/cloudwego/hertz/pkg/protocol"
	"github.com/cloudwego/netpoll"

	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) {
	protocol.ServerDateOnce.Do(protocol.UpdateServerDate) // hertz' clock, which never stops
	netpoll.Initialize()                                  // nor do its pollers
	books.Main(m)
}
