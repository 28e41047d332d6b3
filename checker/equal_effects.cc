#include "checker/equal_effects.h"

#include "absl/strings/str_format.h"

namespace detcd::checker {

EqualEffects::EqualEffects(const WorldObservation& world, Verdict& verdict) : verdict_(verdict) {
  for (MemberId member : world.members) last_.push_back(Last{.member = member});
}

EqualEffects::Effects& EqualEffects::At(LogIndex index) {
  if (effects_.size() <= index.value) effects_.resize(index.value + 1);
  return effects_[index.value];
}

void EqualEffects::OnMember(const MemberObservation& seen, Moment moment) {
  for (Last& last : last_) {
    if (last.member != seen.member) continue;
    bool same = last.seen && last.incarnation == seen.incarnation && last.applied == seen.applied_index &&
                last.digest == seen.history_digest;
    if (same) return;
    last = Last{seen.member, seen.incarnation, seen.applied_index, seen.history_digest, true};
  }
  Effects& effects = At(seen.applied_index);
  if (effects.first.IsZero()) {
    effects.first = seen.member;
    effects.digest = seen.history_digest;
    effects.revision = seen.revision;
    JudgeModel(effects, seen.applied_index, moment);
    return;
  }
  if (effects.digest == seen.history_digest && effects.revision == seen.revision) return;
  verdict_.Report("H3", "different effects at one applied index",
                  absl::StrFormat("member %x at applied index %d has revision %d and other effects than member %x, "
                                  "which had revision %d",
                                  seen.member.value, seen.applied_index.value, seen.revision.value, effects.first.value,
                                  effects.revision.value),
                  moment);
}

void EqualEffects::OnModel(LogIndex index, int64_t revision, Moment moment) {
  Effects& effects = At(index);
  effects.model_revision = revision;
  JudgeModel(effects, index, moment);
}

void EqualEffects::JudgeModel(const Effects& effects, LogIndex index, Moment moment) {
  if (effects.first.IsZero() || effects.model_revision == 0) return;
  if (effects.revision.value == effects.model_revision) return;
  verdict_.Report("H3", "a revision that is not the model's",
                  absl::StrFormat("member %x at applied index %d has revision %d instead of %d", effects.first.value,
                                  index.value, effects.revision.value, effects.model_revision),
                  moment);
}

}  // namespace detcd::checker
