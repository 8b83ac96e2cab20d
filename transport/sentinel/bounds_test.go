package sentinel

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever stands at the address of a dashboard, the log gets a short line of it.
func TestAnswersOfADashboardAreBounded(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 500 " + strings.Repeat("x\x1b", 4<<20) + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20) + "\r\nContent-Length: 2\r\n\r\nno",
		strings.Repeat("\x1bx", 1<<20) + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + `{"success":false,"msg":"` + strings.Repeat("x", 1000) + `"}`,
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = conn.Write([]byte(answer))
		}()
		to, err := url.Parse("http://" + listener.Addr().String())
		require.NoError(t, err)
		h := newHeart(&checked{}, to, netip.MustParseAddrPort("127.0.0.1:1"), nil)
		err = h.tell(t.Context())
		require.Error(t, err)
		assert.Less(t, len(err.Error()), 1_000, "%.100q", answer)
		assert.NotContains(t, err.Error(), "\x1b")
		_ = listener.Close()
	}
}

// A save of many rules is a short line of the log, too.
func TestSavesAreBoundedInTheLog(t *testing.T) {
	l := newLab(t, Config{AllowRuleWrites: true})
	var rules []string
	for i := range 10_000 {
		rules = append(rules, fmt.Sprintf(`{"resource":"r%d","count":1,"grade":1}`, i))
	}
	_, body := l.dashboard().post("setRules", "type", "flow", "data", "["+strings.Join(rules, ",")+"]")
	require.Equal(t, "success", body)
	assert.Contains(t, l.log.text(), "and 9990 more")
	for line := range strings.Lines(l.log.text()) {
		assert.Less(t, len(line), 5_000)
	}
}
