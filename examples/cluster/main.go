// Cluster starts three processes that share one limit:
//
//	GOWORK=off go run -C examples/cluster .
//
// It starts itself three times. Each process makes more calls than a third of the limit, and the limit
// holds for all of them together. After some seconds one is killed, and the others take over its
// share; then it is restarted.
//
// One of the processes keeps the count, and the others reach it over the network. With
//
//	GOWORK=off go run -C examples/cluster . -redis redis://127.0.0.1:6379
//
// Redis keeps it. The files, in reading order: member.go (a process of the cluster), main.go,
// embedded.go (the store in a process, if you have no Redis at hand).
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	penstockredis "github.com/penstock-go/penstock/cluster/redis"
)

const (
	limit   = 1000 // calls per second, of all processes together
	offered = 800  // by each process
	members = 3
)

func main() {
	redis := flag.String("redis", "", "URL of a Redis; by default, one of the processes keeps the store")
	seconds := flag.Int("seconds", 12, "duration of the run")
	flag.Parse()
	if job := os.Getenv(jobVariable); job != "" {
		exit(member(job, os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(run(ctx, settings{out: os.Stdout, redis: *redis, seconds: *seconds}))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// settings are the parameters that tests change.
type settings struct {
	out     io.Writer
	redis   string
	seconds int
}

// processes holds the started processes.
type processes struct {
	store string // its address, or the URL of a Redis

	mu       sync.Mutex
	admitted [members]map[int64]int // calls, by second
}

// process is a started process.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
}

// end makes the process leave the cluster, and waits until it has.
func (p *process) end() {
	_ = p.stdin.Close()
	<-p.ended
}

// run starts the processes, and prints a line each second.
func run(ctx context.Context, s settings) error {
	where, err := place(ctx, s.redis)
	if err != nil {
		return err
	}
	c := &processes{store: s.redis}
	var running [members]*process
	defer func() {
		for _, p := range running {
			if p != nil {
				p.end()
			}
		}
	}()
	for i := range running {
		p, err := c.start(i)
		if err != nil {
			return err
		}
		running[i] = p
	}
	fmt.Fprintf(s.out, "%d processes offer %d calls a second each; %d a second are allowed in total.\n", members, offered, limit)
	fmt.Fprintf(s.out, "The store: %s\n\n", where)
	fmt.Fprintf(s.out, "%6s %11s %11s %11s %7s %7s\n", "second", "process 1", "process 2", "process 3", "sum", "limit")
	for second := 1; second <= s.seconds; second++ {
		now := time.Now()
		next := now.Truncate(time.Second).Add(time.Second)
		if err := sleep(ctx, next.Sub(now)+200*time.Millisecond); err != nil {
			return nil // Ctrl-C
		}
		fmt.Fprintln(s.out, c.line(second, next.Unix()-1))
		switch second {
		case s.seconds / 3:
			_ = running[1].cmd.Process.Kill()
			<-running[1].ended
			fmt.Fprintln(s.out, "       process 2 is killed")
		case 2 * s.seconds / 3:
			p, err := c.start(1)
			if err != nil {
				return err
			}
			running[1] = p
			fmt.Fprintln(s.out, "       process 2 is started again")
		}
	}
	fmt.Fprintln(s.out, "\nUnder steady overload a strict window of 10 buckets admits 10/11 of its limit.\n"+
		"The sum is lower still if a process didn't spend its whole lease.")
	return nil
}

// place returns the location of the store once it has responded: without a store each process would
// use its own share of the limit, and that would look the same.
func place(ctx context.Context, redis string) (string, error) {
	if redis == "" {
		return "kept by process 1", nil
	}
	at, err := url.Parse(redis)
	if err != nil || at.Host == "" && at.Path == "" {
		return "", errors.New("-redis is not a URL: use one such as redis://127.0.0.1:6379")
	}
	store, err := penstockredis.Open(redis)
	if err != nil {
		return "", err
	}
	defer store.Close()
	ctx, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	for {
		if err = store.Probe(ctx); err == nil {
			return at.Redacted(), nil
		}
		if sleep(ctx, 200*time.Millisecond) != nil { // it may be starting
			return "", fmt.Errorf("%s: %w", at.Redacted(), err)
		}
	}
}

// line formats the calls admitted in a second.
func (c *processes) line(second int, unix int64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%6d", second)
	sum := 0
	for _, admitted := range c.admitted {
		n, ok := admitted[unix]
		if ok {
			fmt.Fprintf(&b, " %11d", n)
		} else {
			fmt.Fprintf(&b, " %11s", "-")
		}
		sum += n
	}
	fmt.Fprintf(&b, " %7d %7d", sum, limit)
	return b.String()
}

// start starts process i. Without a Redis, the first one keeps the store and reports its address.
func (c *processes) start(i int) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(job{Store: c.store})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, stdin: stdin, ended: make(chan struct{})}
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		_ = cmd.Wait()
		return nil, errors.New("a process ended at startup")
	}
	c.store = lines.Text()
	c.mu.Lock()
	c.admitted[i] = map[int64]int{}
	c.mu.Unlock()
	go func() {
		for lines.Scan() {
			var second int64
			var n int
			if _, err := fmt.Sscan(lines.Text(), &second, &n); err == nil {
				c.mu.Lock()
				c.admitted[i][second] = n
				c.mu.Unlock()
			}
		}
		_ = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
