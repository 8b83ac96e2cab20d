package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/penstock-go/penstock/core"
)

// Defaults and limits of requests to programs.
const (
	usualURL   = "http://127.0.0.1:8719"
	tokenName  = "PENSTOCK_TOKEN"
	askTimeout = 5 * time.Second
	mostAnswer = 64 << 20 // bytes
	watchEvery = time.Second
)

// program is a running program, queried through the JSON of its console.
type program struct {
	at     *url.URL
	token  string
	client *http.Client
}

// program returns the program at an address.
func (c *command) program(address string) (*program, error) {
	address = cmp.Or(address, usualURL)
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the address of a program: use one such as %s", address, usualURL)
	}
	return &program{at, c.env(tokenName), &http.Client{
		Timeout:   askTimeout,
		Transport: c.transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the token must not go anywhere else
		},
	}}, nil
}

// isAddress reports whether an argument is a program's address, not a file.
func isAddress(arg string) bool {
	return strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://")
}

// ask sends a request and returns the response.
func (p *program) ask(ctx context.Context, path string, query url.Values) ([]byte, error) {
	at := p.at.JoinPath(path)
	at.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if p.token != "" {
		request.Header.Set("Authorization", "Bearer "+p.token)
	}
	response, err := p.client.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			err = fmt.Errorf("%w; does the program serve a console there? See docs/console.md", err)
		}
		return nil, fmt.Errorf("%s doesn't answer: %w", p.at.Host, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the response from %s ended early: %w", p.at.Host, err)
	case len(body) > mostAnswer:
		return nil, fmt.Errorf("the response from %s exceeds %d MiB", p.at.Host, mostAnswer>>20)
	case response.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%s requires a token: set %s", p.at.Host, tokenName)
	case response.StatusCode != http.StatusOK:
		var answer struct{ Error string }
		if json.Unmarshal(body, &answer) == nil && answer.Error != "" {
			return nil, fmt.Errorf("%s: %s", p.at.Host, safe(answer.Error, mostShown))
		}
		return nil, fmt.Errorf("%s responded %s: is it a Penstock console?", p.at.Host, safe(response.Status, mostShown))
	}
	return body, nil
}

const mostShown = 200 // columns of a text from the program

// answer decodes the response to a request.
func answer[T any](ctx context.Context, p *program, path string, query url.Values) (v T, err error) {
	body, err := p.ask(ctx, path, query)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return v, fmt.Errorf("the response from %s is not a console's JSON: %w", p.at.Host, err)
	}
	return v, nil
}

// The parts of the console's JSON that are shown.
type (
	figuresJSON struct {
		Pass, Block, Complete, Exception int64
		AvgRTMs                          float64
		percentilesJSON
	}
	// percentilesJSON is nil if percentiles are off or no call completed.
	percentilesJSON struct{ P50Ms, P95Ms, P99Ms *float64 }
	historyJSON     struct {
		Pass, Block []int64
		RTMs        []float64
	}
	resourceJSON struct {
		Name               string
		Overflow           bool
		InFlight, Waiting  int64
		LastSecond, Minute figuresJSON
		Marks              []string
		History            historyJSON
	}
	resourcesJSON struct {
		At          time.Time
		Total       int
		Percentiles bool
		Resources   []resourceJSON
	}
	detailJSON struct {
		resourceJSON
		At      time.Time
		Limit   *float64
		Units   []core.UnitStats
		Origins []struct {
			Name               string
			Overflow           bool
			InFlight           int64
			LastSecond, Minute figuresJSON
		}
		HotValues []struct {
			Rule, Value     string
			Passed, Refused int64
			Full            *float64
		}
		Rules    []ruleJSON
		Refusals []struct {
			Last                  time.Time
			Count                 int64
			Reason, Origin, Value string
		}
	}
	ruleJSON struct {
		Kind, ID, Resource, Mode string
		Refused, ShadowBlocked   int64
		Full                     *float64
		Measures                 []measureJSON
		StoreAway                bool
	}
	measureJSON struct {
		Of              string
		Measured, Limit float64
		Unit            string
		AtHand          bool
	}
	rulesJSON struct {
		At       time.Time
		Revision uint64
		Hash     string
		Sources  []struct {
			Source    string
			OK        bool
			LastError string
			Rules     int
		}
		Rules []ruleJSON
	}
)

// watching runs f once a second until it is interrupted, overwriting its previous output.
func (c *command) watching(watch bool, f func(ctx context.Context, out io.Writer) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	pause := c.pause
	if pause == nil {
		pause = func(d time.Duration) bool {
			select {
			case <-ctx.Done():
				return false
			case <-time.After(d):
				return true
			}
		}
	}
	for first := true; ; first = false {
		var text strings.Builder
		if err := f(ctx, &text); err != nil {
			if ctx.Err() != nil && watch {
				return nil
			}
			return err
		}
		before := ""
		switch {
		case c.terminal(c.out) && watch:
			before = "\x1b[H\x1b[2J" // clears the screen
		case !first:
			before = "\n"
		}
		if _, err := io.WriteString(c.out, before+text.String()); err != nil {
			return err
		}
		if !watch || !pause(watchEvery) {
			return nil
		}
	}
}

// indented writes JSON with indentation.
func indented(out io.Writer, body []byte) error {
	var v any
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return err
	}
	return writeJSON(out, v)
}
