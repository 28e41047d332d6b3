// The one way a message gets into an Output.
#pragma once

#include <utility>

#include "core/raft/message.h"
#include "core/raft/output.h"
#include "core/raft/state.h"

namespace detcd::raft {

// `term` is what the envelope carries: 0, our own, or with votes the one asked for.
template <class Kind>
void Send(const RaftState& raft, MemberId to, Term term, Kind body, Dependency dependency, Output& output) {
  Outgoing& outgoing = output.messages.emplace_back();
  outgoing.message.from = raft.options.id;
  outgoing.message.to = to;
  outgoing.message.term = term;
  // Built in place: a Body moved through temporaries costs as much as the rest of a heartbeat.
  outgoing.message.body.template emplace<Kind>(std::move(body));
  outgoing.dependency = dependency;
}

}  // namespace detcd::raft
