// load writes unique keys through every endpoint at a fixed pace until its input ends, then reads them back.
//
// It is an open loop: a put starts every tick whether or not earlier ones have returned, so that a cluster without a
// leader is probed all the time and the first put it acknowledges is seen within a tick.
//
//	load -endpoints URL,URL -out FILE [-rate N] [-timeout D] [-prefix P] [-value-bytes N] [-count N]
//
// FILE gets a line for each acknowledged put: key, value, revision, start and end as nanoseconds of the wall clock.
// The last line on standard output is a JSON summary. Exit status 1: an acknowledged put is missing or older.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const inFlightMax = 4000

type acknowledged struct {
	key, value string
	revision   int64
	start, end time.Time
}

type summary struct {
	Started, Acknowledged, Failed, Skipped int
	ReadBack, Missing, Wrong, Older        int
	Errors                                 map[string]int
	Examples                               []string
}

func main() {
	endpoints := flag.String("endpoints", "", "comma separated client URLs; each gets a client of its own")
	out := flag.String("out", "", "file of acknowledged puts")
	rate := flag.Int("rate", 1000, "puts started in a second")
	timeout := flag.Duration("timeout", 5*time.Second, "of one put")
	prefix := flag.String("prefix", "load/", "of every key")
	valueBytes := flag.Int("value-bytes", 32, "size of a value")
	count := flag.Int("count", 0, "stop after so many puts; 0: when the input ends")
	flag.Parse()

	clients := connect(strings.Split(*endpoints, ","))
	acks, result := write(clients, *rate, *timeout, *prefix, *valueBytes, *count)
	record(*out, acks)
	if err := readBack(clients[0], *prefix, acks, &result); err != nil {
		fmt.Fprintln(os.Stderr, "load: read back:", err)
		os.Exit(2)
	}
	line, _ := json.Marshal(result)
	fmt.Println(string(line))
	if result.Missing+result.Wrong+result.Older > 0 {
		os.Exit(1)
	}
}

// One client for each endpoint, so that load does not move to the members that are left when one is killed; the last
// one knows them all, as applications do.
func connect(endpoints []string) []*clientv3.Client {
	sets := make([][]string, 0, len(endpoints)+1)
	sets = append(sets, endpoints)
	for _, endpoint := range endpoints {
		sets = append(sets, []string{endpoint})
	}
	var clients []*clientv3.Client
	for _, set := range sets {
		client, err := clientv3.New(clientv3.Config{Endpoints: set, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
		if err != nil {
			fmt.Fprintln(os.Stderr, "load:", err)
			os.Exit(2)
		}
		clients = append(clients, client)
	}
	return clients
}

func write(clients []*clientv3.Client, rate int, timeout time.Duration, prefix string, valueBytes, count int) ([]acknowledged, summary) {
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()

	result := summary{Errors: map[string]int{}}
	var acks []acknowledged
	var mutex sync.Mutex
	var pending sync.WaitGroup
	slots := make(chan struct{}, inFlightMax)
	filler := strings.Repeat("v", valueBytes)
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
loop:
	for i := 0; count == 0 || i < count; i++ {
		select {
		case <-ended:
			break loop
		case <-ticker.C:
		}
		select {
		case slots <- struct{}{}:
		default:
			result.Skipped++
			continue
		}
		result.Started++
		pending.Add(1)
		go func(i int) {
			defer pending.Done()
			defer func() { <-slots }()
			ack := acknowledged{key: fmt.Sprintf("%s%09d", prefix, i), value: fmt.Sprintf("%d-%s", i, filler)[:max(valueBytes, 12)], start: time.Now()}
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			response, err := clients[i%len(clients)].Put(ctx, ack.key, ack.value)
			cancel()
			ack.end = time.Now()
			mutex.Lock()
			defer mutex.Unlock()
			if err != nil {
				result.Failed++
				result.Errors[errorKind(err)]++
				return
			}
			ack.revision = response.Header.Revision
			acks = append(acks, ack)
		}(i)
	}
	pending.Wait()
	result.Acknowledged = len(acks)
	return acks, result
}

// Addresses in error texts differ from run to run.
func errorKind(err error) string {
	text := err.Error()
	if at := strings.Index(text, "dial tcp"); at >= 0 {
		text = text[:at] + "dial"
	}
	if at := strings.Index(text, "read tcp"); at >= 0 {
		text = text[:at] + "read"
	}
	if at := strings.Index(text, "write tcp"); at >= 0 {
		text = text[:at] + "write"
	}
	return text
}

func record(path string, acks []acknowledged) {
	file, err := os.Create(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(2)
	}
	buffer := bufio.NewWriter(file)
	for _, ack := range acks {
		fmt.Fprintln(buffer, ack.key, ack.value, ack.revision, ack.start.UnixNano(), ack.end.UnixNano())
	}
	if err := buffer.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(2)
	}
	file.Close()
}

// Reads every key of the prefix with linearizable reads, a page at a time, and judges each acknowledged put: its key
// must be there, with its value, at its revision or (the client may have sent it twice) a newer one.
func readBack(client *clientv3.Client, prefix string, acks []acknowledged, result *summary) error {
	type found struct {
		value    string
		revision int64
	}
	const pageKeys = 500
	there := map[string]found{}
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		response, err := client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageKeys))
		cancel()
		if err != nil {
			return err
		}
		for _, kv := range response.Kvs {
			there[string(kv.Key)] = found{string(kv.Value), kv.ModRevision}
		}
		if !response.More {
			break
		}
		from = string(response.Kvs[len(response.Kvs)-1].Key) + "\x00"
	}
	result.ReadBack = len(there)
	for _, ack := range acks {
		seen, ok := there[ack.key]
		problem := ""
		switch {
		case !ok:
			result.Missing++
			problem = "missing"
		case seen.value != ack.value:
			result.Wrong++
			problem = "another value"
		case seen.revision < ack.revision:
			result.Older++
			problem = "an older revision"
		}
		if problem != "" && len(result.Examples) < 5 {
			result.Examples = append(result.Examples, fmt.Sprintf("%s: %s (acknowledged at revision %d)", ack.key, problem, ack.revision))
		}
	}
	return nil
}
