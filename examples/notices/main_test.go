package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/api"
)

func Example() {
	if err := run(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// 00:00:00: acme has used 8 of 10 (80%)
	// 00:00:00: acme has used 10 of 10 (100%)
	// 00:01:30: acme has used 8 of 10 (80%)
	// 00:01:30: globex has used 8 of 10 (80%)
	// 00:01:30: acme has used 10 of 10 (100%)
	// 00:01:30: globex has used 10 of 10 (100%)
}

func TestReceiverRefusesForgeries(t *testing.T) {
	receiver := httptest.NewServer(receive(io.Discard))
	defer receiver.Close()
	if err := post(http.DefaultClient, receiver.URL, []byte("another"), api.Notice{}); err == nil {
		t.Error("another secret is accepted")
	}
	old := "1700000000"
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
	request.Header.Set("X-Timestamp", old)
	request.Header.Set("X-Signature", sign(secret, old, []byte("{}")))
	response := httptest.NewRecorder()
	receive(io.Discard).ServeHTTP(response, request)
	if response.Code != http.StatusUnauthorized {
		t.Errorf("an old message is answered with %d", response.Code)
	}
}
