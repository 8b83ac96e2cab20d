// Notices shows how a program hears that a tenant has used most of a limit: it posts each notice to a
// webhook, signed so that the receiver can check who sent it.
//
//	go run ./examples/notices
package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/hotspot"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

var secret = []byte("read this from a file")

func run(w io.Writer) error {
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()
	err = guard.LoadRules(api.RuleSet{Hotspot: []hotspot.Rule{{
		ID: "tenants", Resource: "POST /images", Param: "tenant", Threshold: 10, Interval: time.Minute,
		Notify: []string{"80%", "100%"},
	}}})
	if err != nil {
		return err
	}

	receiver := httptest.NewServer(receive(w)) // elsewhere
	defer receiver.Close()
	client := &http.Client{Timeout: 5 * time.Second}
	guard.OnNotice(func(n api.Notice) {
		if err := post(client, receiver.URL, secret, n); err != nil {
			fmt.Fprintln(w, "not delivered:", err)
		}
	})

	for minute := range 2 {
		for range 12 {
			for _, tenant := range []string{"acme", "globex"} {
				if tenant == "globex" && minute == 0 {
					continue // a quiet minute
				}
				if e, err := guard.Entry(context.Background(), "POST /images", api.Param("tenant", tenant)); err == nil {
					e.Exit()
				}
			}
		}
		clock.Advance(90 * time.Second)
	}
	return nil
}

// message is the body of the webhook.
type message struct {
	At      time.Time `json:"at"`
	Rule    string    `json:"rule"`
	Tenant  any       `json:"tenant"`
	Percent int       `json:"percent"`
	Used    int64     `json:"used"`
	Limit   int64     `json:"limit"`
}

// post posts a notice with the time and a signature of both. A Guard calls its listeners one after
// another, away from any call, so it may take a while.
func post(client *http.Client, url string, secret []byte, n api.Notice) error {
	body, err := json.Marshal(message{n.At, n.Rule, n.Value.Scalar(), n.Percent, n.Used, n.Limit})
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	sent := strconv.FormatInt(time.Now().Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Timestamp", sent)
	request.Header.Set("X-Signature", sign(secret, sent, body))
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the webhook answered %s", response.Status)
	}
	return nil
}

// sign returns the signature of a message that is sent at a time, in hex.
func sign(secret []byte, sent string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s", sent, body)
	return hex.EncodeToString(mac.Sum(nil))
}

// receive returns the receiver of the webhook: it refuses messages with a wrong signature, and messages
// that were signed long ago and may be replayed.
func receive(w io.Writer) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, 1<<16))
		if err != nil {
			http.Error(response, "too long", http.StatusRequestEntityTooLarge)
			return
		}
		sent := request.Header.Get("X-Timestamp")
		seconds, err := strconv.ParseInt(sent, 10, 64)
		if age := time.Since(time.Unix(seconds, 0)); err != nil || age.Abs() > 5*time.Minute ||
			!hmac.Equal([]byte(request.Header.Get("X-Signature")), []byte(sign(secret, sent, body))) {
			http.Error(response, "wrong signature", http.StatusUnauthorized)
			return
		}
		var m message
		if err := json.Unmarshal(body, &m); err != nil {
			http.Error(response, "not a notice", http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "%s: %v has used %d of %d (%d%%)\n", m.At.Format(time.TimeOnly), m.Tenant, m.Used, m.Limit, m.Percent)
	})
}
