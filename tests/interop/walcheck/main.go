// walcheck reads the write-ahead log of a stopped member with etcd's own wal package, read-only, and looks up every
// acknowledged put in it. The package verifies the record framing and the CRC chain over all segments.
//
//	walcheck -dir DATA/member/wal -acks FILE
//
// FILE is what load writes. Prints a JSON summary. Exit status 1: the log is damaged or a put is missing in it.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

type summary struct {
	Segments, Entries, Puts, Acknowledged, Missing int
	NodeID, ClusterID                              string
	Term, Commit, FirstIndex, LastIndex            uint64
	Examples                                       []string
}

func fail(what string, err error) {
	fmt.Fprintf(os.Stderr, "walcheck: %s: %v\n", what, err)
	os.Exit(1)
}

func main() {
	dir := flag.String("dir", "", "folder of the segments")
	acks := flag.String("acks", "", "file of acknowledged puts")
	flag.Parse()

	index, term := uint64(0), uint64(0)
	log, err := wal.OpenForRead(zap.NewNop(), *dir, &walpb.Snapshot{Index: &index, Term: &term})
	if err != nil {
		fail("open", err)
	}
	metadata, state, entries, err := log.ReadAll()
	if err != nil {
		fail("read", err)
	}
	log.Close()

	var result summary
	segments, _ := filepath.Glob(filepath.Join(*dir, "*.wal"))
	result.Segments = len(segments)
	var ids etcdserverpb.Metadata
	if err := proto.Unmarshal(metadata, &ids); err != nil {
		fail("metadata record", err)
	}
	result.NodeID, result.ClusterID = fmt.Sprintf("%x", ids.GetNodeID()), fmt.Sprintf("%x", ids.GetClusterID())
	result.Term, result.Commit = state.GetTerm(), state.GetCommit()
	result.Entries = len(entries)
	puts := map[string]string{}
	for i, entry := range entries {
		if i > 0 && entry.GetIndex() != entries[i-1].GetIndex()+1 {
			fail("entries", fmt.Errorf("index %d after %d", entry.GetIndex(), entries[i-1].GetIndex()))
		}
		if entry.GetType() != raftpb.EntryNormal || len(entry.GetData()) == 0 {
			continue
		}
		var request etcdserverpb.InternalRaftRequest
		if err := proto.Unmarshal(entry.GetData(), &request); err != nil {
			fail(fmt.Sprintf("entry %d", entry.GetIndex()), err)
		}
		if put := request.GetPut(); put != nil {
			result.Puts++
			puts[string(put.GetKey())] = string(put.GetValue())
		}
	}
	if len(entries) > 0 {
		result.FirstIndex, result.LastIndex = entries[0].GetIndex(), entries[len(entries)-1].GetIndex()
	}
	look(*acks, puts, &result)
	line, _ := json.Marshal(result)
	fmt.Println(string(line))
	if result.Missing > 0 {
		os.Exit(1)
	}
}

func look(path string, puts map[string]string, result *summary) {
	file, err := os.Open(path)
	if err != nil {
		fail("acknowledged puts", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		result.Acknowledged++
		if value, ok := puts[fields[0]]; !ok || value != fields[1] {
			result.Missing++
			if len(result.Examples) < 5 {
				result.Examples = append(result.Examples, fields[0])
			}
		}
	}
	if err := lines.Err(); err != nil {
		fail("acknowledged puts", err)
	}
}
