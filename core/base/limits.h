// Every bound of the core, in one place, related by static_asserts. A queue, batch, message, retry or wait that is not
// bounded by a name of this file is a defect. Sizes are in bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/time.h"

namespace detcd {

// --- clients -------------------------------------------------------------------------------------------------------
inline constexpr size_t kRequestBytesMax = 1'572'864;              // etcd --max-request-bytes: an encoded proposal
inline constexpr size_t kReceiveSlackBytes = 524'288;              // a received message may be this much larger
inline constexpr size_t kReceiveBytesMax = kRequestBytesMax + kReceiveSlackBytes;
inline constexpr size_t kTxnOpsMax = 128;                          // etcd --max-txn-ops: compares, or ops of one branch
inline constexpr uint64_t kApplyBacklogEntriesMax = 5'000;         // commit ahead of applied: too many requests
inline constexpr size_t kProposalsInFlightMax = 100'000;           // waiting for their apply on this member
inline constexpr size_t kUnproposedBytesMax = 256 * 1'048'576;      // proposals that wait for a leader to be known
inline constexpr size_t kReadsInFlightMax = 100'000;               // linearizable reads that wait for a read index
inline constexpr size_t kReadRoundsInFlightMax = 8;                // read index rounds under way at once
inline constexpr size_t kReadsInFlightBytesMax = 256 * 1'048'576;  // and the bytes of their requests
inline constexpr size_t kRangeStreamFirstPairs = 10;               // RangeStream: the first message's pairs
inline constexpr size_t kRangeStreamChunkBytesMax = 2 * kRequestBytesMax;  // a message ends here; one pair may pass it
inline constexpr int kMessageDepthMax = 1'000;                     // messages within messages: txns nest 128 deep, twice
inline constexpr Duration kRequestTimeoutBase = Seconds(5);        // plus two election timeouts
inline constexpr Duration kReadIndexRetry = Millis(500);           // a read index round is asked again after this
inline constexpr size_t kLeaderMovesWaitingMax = 1'024;             // calls that wait for another member to lead
inline constexpr Duration kDrainTimeout = Seconds(1);              // a stop waits this long for clients to leave

// --- raft ----------------------------------------------------------------------------------------------------------
inline constexpr size_t kAppendBytesMax = 1'048'576;               // entry bytes in one append (one entry may pass it)
inline constexpr size_t kAppendsInFlightMax = 512;                 // per follower in replicate state
inline constexpr size_t kAppendsOfBytesInFlightMax = 16;           // bytes in flight per follower: of so many full appends
inline constexpr size_t kReadRoundsWaitingMax = 1'024;             // rounds of read index that wait for an answer
inline constexpr size_t kUncommittedBytesMax = 2'147'483'648;      // proposals beyond are dropped (etcd: 2 GiB)
inline constexpr uint64_t kLogEntriesInMemoryMax = 5'000;          // applied entries kept for slow followers
inline constexpr size_t kLogBytesInMemoryMax = 64 * 1'048'576;     // and their bytes
inline constexpr size_t kApplyBatchEntriesMax = 1'024;             // committed entries applied in one turn

// --- store ---------------------------------------------------------------------------------------------------------
inline constexpr size_t kRangeSliceKeys = 16'384;                  // one slice of a range: keys walked over, about 1 ms
inline constexpr size_t kRangeSlicePairs = 1'024;                  // pairs given, about 0.4 ms
inline constexpr size_t kRangeSliceBytes = 1'048'576;              // and their bytes
inline constexpr size_t kStoreSliceChanges = 512;                  // one slice of a removal or a hash: about 50 us
inline constexpr uint64_t kRecoveryEntriesPerSlice = 64;           // while the log is read, a slice each so many entries
inline constexpr size_t kCompactionHashesMax = 10;                 // results kept, as etcd does
inline constexpr size_t kHashesWaitingMax = 64;                    // HashKV calls under way at once

// --- write-ahead log -----------------------------------------------------------------------------------------------
inline constexpr uint64_t kWalSegmentBytes = 64'000'000;           // etcd's segment size
inline constexpr size_t kWalRecordBytesMax = 64 * 1'048'576;       // a larger length field is damage or a torn tail
inline constexpr size_t kWalReadBytes = 1'048'576;                 // one sequential read of recovery
inline constexpr size_t kWalBatchBytesMax = 16 * 1'048'576;        // records gathered for one write

// --- peers ---------------------------------------------------------------------------------------------------------
inline constexpr size_t kPeerQueueMessagesMax = 4'096;             // per peer and channel; beyond: dropped, unreachable
inline constexpr size_t kPeerQueueBytesMax = 64 * 1'048'576;
inline constexpr uint64_t kPeerMessageBytesMax = 536'870'912;      // etcd's limit on reading one stream message
inline constexpr Duration kPeerRedialInterval = Millis(100);
inline constexpr Duration kPeerReadTimeout = Seconds(5);
inline constexpr Duration kPeerLinkHeartbeat = Nanos(Seconds(5).nanos / 3);
inline constexpr Duration kPeerWriteTimeout = Seconds(5);          // a peer that takes no byte for so long is cut off
inline constexpr size_t kPeerStreamBufferBytesMax = 4 * 1'048'576;  // encoded, unsent; one message may pass it
inline constexpr size_t kPeerPostsMax = 64;                        // per peer, waiting for the pipeline (etcd: 64)
inline constexpr size_t kPeerPostBytesMax = 64 * 1'048'576;        // and their bytes; one message may pass it
inline constexpr size_t kPeerAnswerBytesMax = 65'536;              // body of an answer to a request of ours
inline constexpr Duration kPeerAnswerTimeout = Seconds(5);         // for the answer to a request of ours
inline constexpr Duration kPeerProbeInterval = Seconds(4);         // etcd: the read timeout less a second
inline constexpr Duration kClusterVersionInterval = Seconds(4);    // a leader looks at the members' versions so often
inline constexpr Duration kClusterVersionAnswerTimeout = Seconds(2);  // and waits so long for their answers
inline constexpr size_t kPeerConnectionsMax = 1'024;               // accepted on the peer port; more are reset

// --- connections ---------------------------------------------------------------------------------------------------
inline constexpr size_t kHttpHeaderBytesMax = 65'536;              // one HTTP/1.1 head, or one HTTP/2 header list
inline constexpr size_t kGrpcMessageBytesMax = kHttpHeaderBytesMax / 4;  // of a status text; tripled by its encoding
inline constexpr size_t kHttpBodyBytesMax = kReceiveBytesMax;      // an HTTP/1.1 request body
inline constexpr Duration kHttpHeaderTimeout = Seconds(300);       // for the first bytes and for a whole head
inline constexpr size_t kConnectionWriteBacklogMax = 16 * 1'048'576;  // stop draining responses above this
inline constexpr size_t kSendBytesMax = 2'147'483'647;                // one response message: gRPC's and protobuf's limit
inline constexpr size_t kConnectionSendBacklogMax = 256 * 1'048'576;  // answers that a client's windows hold back
inline constexpr uint32_t kHttp2WindowBytes = 1'048'576;           // per stream
inline constexpr uint32_t kHttp2ConnectionWindowBytes = 16 * 1'048'576;
inline constexpr uint32_t kHttp2StreamsOpenMax = 100'000;          // per connection; a SETTINGS limit is not announced
inline constexpr uint32_t kHttp2ResetsPerSecondMax = 10'000;    // streams of one client that are reset; beyond: GOAWAY
inline constexpr uint32_t kHttp2OverheadPerSecondMax = 10'000;  // its frames that carry nothing; beyond: GOAWAY
inline constexpr uint32_t kHttp2SettingsPerSecondMax = 100;     // and SETTINGS among them
inline constexpr size_t kOpenCallBytes = 1'024;                 // what an open call is taken to occupy, its data apart
inline constexpr size_t kClientBytesMax = 1'073'741'824;        // of all client connections; the largest is cut
inline constexpr size_t kCallSendBacklogMax = kHttp2WindowBytes;   // responses of one call that wait for its window
inline constexpr size_t kConnectionReceiveBacklogMax = 256 * 1'048'576;  // unfinished messages of one connection
inline constexpr Duration kPingIntervalMin = Seconds(5);           // etcd: a client that pings faster gets strikes
inline constexpr Duration kPingIntervalDefault = Seconds(300);     // grpc-go's, when --grpc-keepalive-min-time is 0
inline constexpr Duration kPingIntervalIdleMin = Seconds(7'200);   // and so without an open stream
inline constexpr uint32_t kPingStrikesMax = 2;                     // the next one closes the connection
inline constexpr Duration kKeepaliveInterval = Seconds(7'200);     // a silent client is pinged after this
inline constexpr Duration kKeepaliveIntervalMin = Seconds(1);      // a shorter one that is asked for is raised to this
inline constexpr Duration kKeepaliveTimeout = Seconds(20);         // and cut when it is silent for so long again
inline constexpr Duration kHttp2HandshakeTimeout = Seconds(120);   // for a client's preface and first SETTINGS
inline constexpr Duration kHttp2ExpelTimeout = Seconds(1);         // for a GOAWAY to leave, before the cut

static_assert(kWalRecordBytesMax > kReceiveBytesMax, "every proposal fits a record");
static_assert(kPeerLinkHeartbeat * 2 < kPeerReadTimeout, "one lost link heartbeat cuts no stream");
static_assert(kPeerProbeInterval < kPeerReadTimeout, "probes keep the connection that requests share");
static_assert(kClusterVersionAnswerTimeout < kClusterVersionInterval, "one round at a time");
static_assert(kWalBatchBytesMax > kReceiveBytesMax);
static_assert(kReadsInFlightBytesMax > kReceiveBytesMax);
static_assert(kHttp2ConnectionWindowBytes >= kHttp2WindowBytes);
static_assert(kCallSendBacklogMax < kConnectionWriteBacklogMax, "one slow call does not stop its connection");
static_assert(kHttp2SettingsPerSecondMax <= kHttp2OverheadPerSecondMax);
static_assert(kClientBytesMax >= kConnectionReceiveBacklogMax + kConnectionSendBacklogMax + kConnectionWriteBacklogMax);
static_assert(kConnectionReceiveBacklogMax >= kHttp2ConnectionWindowBytes + kReceiveBytesMax);

}  // namespace detcd
