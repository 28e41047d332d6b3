// The one way a message gets into an Output.
#pragma once

#include <utility>

#include "core/raft/message.h"
#include "core/raft/output.h"
#include "core/raft/state.h"

namespace detcd::raft {

// `term` is what the envelope carries: 0, our own, or with votes the one asked for.
inline void Send(const RaftState& raft, MemberId to, Term term, Body body, Dependency dependency, Output& output) {
  output.messages.push_back(
      {.message = {.from = raft.options.id, .to = to, .term = term, .body = std::move(body)}, .dependency = dependency});
}

}  // namespace detcd::raft
