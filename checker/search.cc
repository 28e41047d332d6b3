#include "checker/search.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "checker/execution.h"
#include "checker/requests.h"
#include "checker/search_facts.h"
#include "core/base/check.h"
#include "core/base/digest.h"

namespace detcd::checker {
namespace {

struct Fingerprint {
  uint64_t high = 0;
  uint64_t low = 0;

  void Toggle(const Fingerprint& other) {
    high ^= other.high;
    low ^= other.low;
  }
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Fingerprint& f) {
    return H::combine(std::move(h), f.low, f.high);
  }
};

// Draws of Zobrist's table are computed, not stored.
Fingerprint Draw(uint64_t salt, uint64_t kind, uint64_t number) {
  Digest digest;
  digest.Add(salt);
  digest.Add(kind);
  digest.Add(number);
  uint64_t low = digest.value();
  digest.Add(~salt);
  return {digest.value(), low};
}

struct Slot {
  bool live = false;
  uint32_t value = kNoNumber;
  int64_t create = 0;
  int64_t mod = 0;
  int64_t version = 0;
};

// The numbers [0, size) of which some are taken; what was taken last is put back first (Knuth 2000, dancing links).
class TimeList {
 public:
  explicit TimeList(size_t size = 0) : next_(size + 1), previous_(size + 1) {
    for (size_t i = 0; i <= size; ++i) {
      next_[i] = i == size ? 0 : i + 1;  // `size` stands before the first and behind the last
      previous_[i] = i == 0 ? size : i - 1;
    }
  }
  size_t head() const { return next_.back(); }
  size_t next(size_t i) const { return next_[i]; }  // `size`: none; of one just taken: as before
  void Take(size_t i) {
    next_[previous_[i]] = next_[i];
    previous_[next_[i]] = previous_[i];
  }
  void PutBack(size_t i) { next_[previous_[i]] = previous_[next_[i]] = i; }

 private:
  std::vector<size_t> next_;
  std::vector<size_t> previous_;
};

// Searches the orders of one part.
class PartSearch final : private StateView {
 public:
  PartSearch(const Facts& facts, const std::vector<uint32_t>& part, uint64_t salt, uint32_t bits)
      : all_(facts),
        revisions_(facts.evidence == Evidence::kAll),
        salt_(salt),
        mask_{bits >= 128 ? ~uint64_t{0} : (bits <= 64 ? 0 : (uint64_t{1} << (bits - 64)) - 1),
              bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1},
        slots_(facts.keys.size()),

        taken_(facts.history.size()) {
    for (uint32_t fact : part) {
      const Fact& f = all_.facts[fact];
      if (!f.claim.must) {
        optional_.push_back(fact);
      } else if (f.claim.floating) {
        floating_.push_back(fact);
      } else {
        events_.push_back({f.claim.call, fact, true});
        events_.push_back({f.claim.end, fact, false});
      }
      if (f.pinned && f.reads_only) ++reads_left_[f.revision];
      if (f.kind == FactKind::kImpossible || (f.pinned && f.revision < (f.reads_only ? 1 : 2))) impossible_ = true;
    }
    must_left_ = events_.size() / 2 + floating_.size();
    std::ranges::sort(floating_, {}, [&](uint32_t fact) { return all_.facts[fact].claim.end; });
    std::ranges::sort(events_, {}, &Event::at);
    events_left_ = TimeList(events_.size());
    floats_left_ = TimeList(floating_.size());
    ends_.resize(all_.facts.size());
    place_.resize(all_.facts.size());
    for (size_t i = 0; i < events_.size(); ++i) (events_[i].is_call ? place_ : ends_)[events_[i].fact] = i;
    for (size_t i = 0; i < floating_.size(); ++i) place_[floating_[i]] = i;
    FindCuts();
  }

  // Goes on until it knows, or has made `steps_max` steps in all.
  SearchVerdict Run(uint64_t steps_max) {
    if (impossible_) return SearchVerdict::kIllegal;
    Cursor cursor = Descend();
    while (true) {
      if (must_left_ == 0) return SearchVerdict::kLegal;
      if (steps_ >= steps_max) return SearchVerdict::kUndetermined;
      uint32_t chosen = Next(cursor);
      if (chosen != kNoNumber) {
        Place(chosen, false, cursor);
        if (tried_.insert(Masked()).second) {
          cursor = Descend();
          continue;
        }
      }
      // Nothing is left here, or the place reached is known: back to the last choice.
      while (stack_.size() > floor_ && stack_.back().forced) TakeBack();
      if (stack_.size() == floor_) return SearchVerdict::kIllegal;
      cursor = stack_.back().cursor;
      TakeBack();
    }
  }

  uint64_t steps() const { return steps_; }
  std::vector<uint32_t> order() const {
    std::vector<uint32_t> order;
    for (const Frame& frame : stack_) order.push_back(frame.fact);
    return order;
  }

 private:
  struct Event {
    uint64_t at = 0;
    uint32_t fact = 0;
    bool is_call = false;
  };
  // Where to look for the next choice at one state: first among facts that must be, then among those that may.
  struct Cursor {
    size_t event = 0;             // in events_
    size_t optional = 0;          // in optional_
    uint64_t first_end = kNever;  // nothing called after it can be next
  };
  struct Frame {
    uint32_t fact = 0;
    bool forced = false;       // placed at once, not chosen among several
    Cursor cursor;             // where to go on, once this is taken back
    size_t undo_from = 0;      // in undo_
    Fingerprint before;
    int64_t revision_before = 0;
  };
  struct Undo {
    uint32_t key = 0;
    Slot slot;
  };
  struct Cut {
    size_t musts = 0;          // facts, not floating, that are placed there: all called before it
    uint64_t at = 0;           // event
    int64_t revision = 0;      // kAll: of the state
  };

  // --- what is left, in order of time ---

  // Whether a floating fact that is left must stand before `change`.
  bool FloatingComesFirst(const Fact& change) const {
    for (size_t i = floats_left_.head(); i != floating_.size(); i = floats_left_.next(i)) {
      const Fact& fact = all_.facts[floating_[i]];
      if (fact.claim.end > change.claim.call) return false;
      if (revisions_ || Touches(change, fact)) return true;
    }
    return false;
  }

  // kValues: whether `change` may change what `fact` shows; as the kernel sees it, where ranges have gaps.
  bool Touches(const Fact& change, const Fact& fact) const {
    if (change.kind != FactKind::kTxn && fact.kind != FactKind::kTxn) {
      return fact.first < change.last && change.first < fact.last;
    }
    return MayTouch(all_.history[change.claim.place.operation].request, all_.history[fact.claim.place.operation].request);
  }

  // --- cut points ---

  // Moments at which no fact is under way and the state that the facts before lead to is the same in every order.
  void FindCuts() {
    size_t open = 0;
    size_t calls = 0;
    int64_t revision = 1;
    int64_t owned = 1;  // kAll: every revision up to here has its author among the facts called so far
    std::vector<uint64_t> last_end(slots_.size());  // kValues, by key: of changes
    std::vector<bool> certain(slots_.size(), true);
    size_t uncertain = 0;
    std::vector<int64_t> made;
    for (const Event& event : events_) {
      const Fact& fact = all_.facts[event.fact];
      if (!event.is_call) {
        if (--open > 0) continue;
        std::ranges::sort(made, std::greater<>());
        while (!made.empty() && made.back() <= owned + 1) {
          owned = std::max(owned, made.back());
          made.pop_back();
        }
        bool settled = revisions_ ? made.empty() && revision <= owned : uncertain == 0;
        if (settled) cuts_.push_back({calls, event.at, owned});
        continue;
      }
      ++open;
      ++calls;
      if (fact.pinned) revision = std::max(revision, fact.revision);
      if (fact.reads_only) continue;
      if (revisions_) made.push_back(fact.revision);
      if (revisions_ || fact.ignore_value) continue;  // the latter leaves all values as they are
      for (uint32_t key = fact.first; key < fact.last; ++key) {
        // In every order it is the last change of the key so far. A transaction may not touch it at all.
        bool last = fact.claim.call > last_end[key] && fact.kind != FactKind::kTxn;
        if (last != certain[key]) uncertain = last ? uncertain - 1 : uncertain + 1;
        certain[key] = last;
        last_end[key] = std::max(last_end[key], fact.claim.end);
      }
    }
  }

  // Settles what is placed, when this is a cut point.
  void SettleAtCut() {
    auto cut = std::ranges::lower_bound(cuts_, musts_placed_, {}, &Cut::musts);
    if (cut == cuts_.end() || cut->musts != musts_placed_) return;
    if (revisions_) {
      // Floating facts need no look: each stands at its revision, in every order the same state.
      if (revision_ != cut->revision) return;
    } else {
      if (floats_left_.head() != floating_.size()) return;
      // One without an answer, placed or not, makes the state uncertain; one called later may be placed by now.
      if (optional_placed_ > 0) return;
      if (!optional_.empty() && all_.facts[optional_.front()].claim.call < cut->at) return;
    }
    floor_ = stack_.size();
    tried_ = {};
  }

  // --- choosing ---

  // Places all that can be placed at once, and returns the start of the choice among the rest.
  Cursor Descend() {
    for (size_t i = floats_left_.head(); i != floating_.size(); i = floats_left_.next(i)) {
      // Of thousands that are left few stand here: no step is spent on the others.
      if (StandsElsewhere(all_.facts[floating_[i]])) continue;
      if (Fits(floating_[i])) Place(floating_[i], true, {});
    }
    // Placing a read changes no state, but takes its end away, and with it what bounds the facts in reach.
    size_t event = events_left_.head();
    while (event != events_.size() && events_[event].is_call) {
      uint32_t fact = events_[event].fact;
      event = events_left_.next(event);
      if (!all_.facts[fact].reads_only || !Fits(fact)) continue;
      if (event == ends_[fact]) event = events_left_.next(event);
      Place(fact, true, {});
    }
    SettleAtCut();
    if (revisions_ && ReadsLeftHere()) return {.event = events_.size(), .optional = optional_.size()};
    Cursor cursor{.event = events_left_.head()};
    event = cursor.event;
    while (event != events_.size() && events_[event].is_call) event = events_left_.next(event);
    if (event != events_.size()) cursor.first_end = events_[event].at;
    return cursor;
  }

  bool StandsElsewhere(const Fact& fact) const { return fact.pinned && fact.reads_only && fact.revision != revision_; }

  bool ReadsLeftHere() const {
    auto left = reads_left_.find(revision_);
    return left != reads_left_.end() && left->second > 0;
  }

  // The next fact to try at this state; kNoNumber: none is left. Moves the cursor behind it.
  uint32_t Next(Cursor& cursor) {
    while (cursor.event != events_.size() && events_[cursor.event].is_call) {
      uint32_t fact = events_[cursor.event].fact;
      cursor.event = events_left_.next(cursor.event);
      if (!all_.facts[fact].reads_only && Fits(fact) && !FloatingComesFirst(all_.facts[fact])) return fact;
    }
    cursor.event = events_.size();
    const Author* author = nullptr;
    if (revisions_) {
      if (revision_ >= all_.revision_max) return kNoNumber;
      auto it = all_.authors.find(revision_ + 1);
      if (it != all_.authors.end()) author = &it->second;
      if (author != nullptr && author->owner != kNoNumber) return kNoNumber;
    }
    while (cursor.optional < optional_.size()) {
      uint32_t fact = optional_[cursor.optional];
      const Fact& f = all_.facts[fact];
      if (f.claim.call >= cursor.first_end) break;
      ++cursor.optional;
      if (taken_[f.claim.place.operation]) continue;
      if (f.elder != kNoNumber && !taken_[all_.facts[f.elder].claim.place.operation]) continue;
      if (author != nullptr && !MayBe(f, *author)) continue;
      if (!revisions_ && !IsNeededNext(f)) continue;
      if (Fits(fact) && !FloatingComesFirst(f)) return fact;
    }
    cursor.optional = optional_.size();
    return kNoNumber;
  }

  // Whether a fact without an answer agrees with what pairs tell of the revision it would make.
  bool MayBe(const Fact& fact, const Author& author) const {
    if (fact.kind == FactKind::kTxn) return true;  // seen when it is tried
    if (fact.kind != FactKind::kPut || (author.key != kNoNumber && fact.first != author.key)) return false;
    uint32_t value = fact.ignore_value ? slots_[fact.first].value : fact.value;
    return author.value == kNoNumber || author.value == value;
  }

  // kValues: whether a fact in reach may be the next after `unanswered` that must be. One without an answer can be moved
  // behind all that does not touch its keys, and is void where the next change of them hides it: so a put stands before
  // one that shows it (with no others between that must be), a delete before one that touches its keys.
  // A transaction may be needed for what it finds: it is considered everywhere, and whatever it names may stand before it.
  bool IsNeededNext(const Fact& unanswered) const {
    if (unanswered.kind == FactKind::kTxn) return true;
    for (uint32_t other : optional_) {
      const Fact& fact = all_.facts[other];
      if (fact.kind != FactKind::kTxn || taken_[fact.claim.place.operation]) continue;
      if (fact.first < unanswered.last && unanswered.first < fact.last) return true;
    }
    auto needs = [&](const Fact& fact) {
      if (unanswered.kind == FactKind::kPut) return ShowsPresence(fact, unanswered);
      return fact.first < unanswered.last && unanswered.first < fact.last;
    };
    for (size_t i = floats_left_.head(); i != floating_.size(); i = floats_left_.next(i)) {
      if (needs(all_.facts[floating_[i]])) return true;
    }
    size_t event = events_left_.head();
    for (; event != events_.size() && events_[event].is_call; event = events_left_.next(event)) {
      if (needs(all_.facts[events_[event].fact])) return true;
    }
    return false;
  }

  // --- whether a fact fits the present state ---

  bool Fits(uint32_t number) {
    ++steps_;
    const Fact& fact = all_.facts[number];
    switch (fact.kind) {
      case FactKind::kImpossible: return false;
      case FactKind::kRevision: return fact.revision == revision_;
      case FactKind::kBelow: return revision_ < fact.revision;
      case FactKind::kAbove: return revision_ > fact.revision;
      case FactKind::kAbsent: return CountLive(fact) == 0;
      case FactKind::kPut: return PutFits(fact);
      case FactKind::kDelete: return DeleteFits(fact);
      case FactKind::kTxn: return TxnFits(fact);
      case FactKind::kTxnError: return MayFail(RequestOf(fact), *this, all_.history[fact.claim.place.operation].answer.error);
      case FactKind::kRange:
        if (fact.pinned && fact.revision != revision_) return false;
        return fact.plain ? PairsAreLive(fact) : RangeFits(fact);
    }
    return false;
  }

  bool PutFits(const Fact& fact) const {
    if (fact.pinned && fact.revision != revision_ + 1) return false;
    const Slot& slot = slots_[fact.first];
    if (fact.ignore_value && !slot.live) return false;
    if (fact.answered) return !fact.shows_pairs || PairsAreLive(fact);
    return revisions_ || !slot.live || slot.value != fact.value;  // one that changes nothing needs no place
  }

  bool DeleteFits(const Fact& fact) const {
    if (fact.pinned && fact.revision != revision_ + (fact.reads_only ? 0 : 1)) return false;
    int64_t live = CountLive(fact);
    if (!fact.answered) return live > 0;
    return live == fact.count && (!fact.shows_pairs || PairsAreLive(fact));
  }

  const Request& RequestOf(const Fact& fact) const { return all_.history[fact.claim.place.operation].request; }

  Execution Run(const Fact& fact) const {
    const Operation& operation = all_.history[fact.claim.place.operation];
    return Execute(operation.request, *this, fact.answered ? &operation.answer : nullptr, fact.claim.place.guess);
  }

  bool TxnFits(const Fact& fact) const {
    if (fact.pinned && fact.revision != revision_ + (fact.reads_only ? 0 : 1)) return false;
    const Execution execution = Run(fact);
    if (!execution.error.empty() || !execution.trouble.empty()) return false;
    return execution.changes.empty() == fact.reads_only;  // one without an answer that changes nothing needs no place
  }

  // --- StateView ---

  int64_t revision() const override { return revision_; }
  std::vector<ObservedKeyValue> Live(const std::string& key, const std::string& range_end) const override {
    std::vector<ObservedKeyValue> live;
    auto number = static_cast<uint32_t>(std::ranges::lower_bound(all_.keys, key) - all_.keys.begin());
    for (; number < slots_.size() && InRange(all_.keys[number], key, range_end); ++number) {
      if (!slots_[number].live) continue;
      FactPair pair = PairAt(number);
      live.push_back({all_.keys[number], all_.values[pair.value], pair.create, pair.mod, pair.version});
    }
    return live;
  }
  std::optional<std::vector<ObservedKeyValue>> LiveAt(const std::string&, const std::string&, int64_t) const override {
    return std::nullopt;
  }
  int64_t compact_revision() const override { return -1; }
  Evidence evidence() const override { return all_.evidence; }

  int64_t CountLive(const Fact& fact) const {
    int64_t live = 0;
    for (uint32_t key = fact.first; key < fact.last; ++key) live += slots_[key].live ? 1 : 0;
    return live;
  }

  FactPair PairAt(uint32_t key) const {
    const Slot& slot = slots_[key];
    if (!revisions_) return {key, slot.value, 0, 0, 0};
    return {key, slot.value, slot.create, slot.mod, slot.version};
  }

  bool PairsAreLive(const Fact& fact) const {
    size_t next = 0;
    for (uint32_t key = fact.first; key < fact.last; ++key) {
      if (!slots_[key].live) continue;
      if (next == fact.pairs.size() || fact.pairs[next] != PairAt(key)) return false;
      ++next;
    }
    return next == fact.pairs.size();
  }

  // The slow way, for limits, orders and filters.
  bool RangeFits(const Fact& fact) const {
    const Operation& operation = all_.history[fact.claim.place.operation];
    if (CountLive(fact) != operation.answer.count) return false;
    std::vector<ObservedKeyValue> live;
    for (uint32_t key = fact.first; key < fact.last; ++key) {
      if (!slots_[key].live) continue;
      FactPair pair = PairAt(key);
      live.push_back({all_.keys[key], all_.values[pair.value], pair.create, pair.mod, pair.version});
    }
    if (revisions_) return RangeTrouble(operation.request, operation.answer, std::move(live)).empty();
    return ValuesTrouble(operation.request, operation.answer, std::move(live)).empty();
  }

  // --- placing and taking back ---

  Fingerprint SlotPrint(uint32_t key) const {
    const Slot& slot = slots_[key];
    Digest digest;
    digest.Add(slot.value);
    if (revisions_) {
      digest.Add(static_cast<uint64_t>(slot.create));
      digest.Add(static_cast<uint64_t>(slot.mod));
      digest.Add(static_cast<uint64_t>(slot.version));
    }
    return Draw(salt_ ^ digest.value(), 1, key);
  }

  void Set(uint32_t key, const Slot& slot) {
    undo_.push_back({key, slots_[key]});
    if (slots_[key].live) print_.Toggle(SlotPrint(key));
    slots_[key] = slot;
    if (slots_[key].live) print_.Toggle(SlotPrint(key));
  }

  void Place(uint32_t number, bool forced, const Cursor& cursor) {
    const Fact& fact = all_.facts[number];
    Execution txn;
    if (fact.kind == FactKind::kTxn && !fact.reads_only) txn = Run(fact);
    stack_.push_back({number, forced, cursor, undo_.size(), print_, revision_});
    // A transaction without an answer is placed once, whatever its branches.
    print_.Toggle(Draw(salt_, 0, fact.claim.must ? number : all_.facts.size() + fact.claim.place.operation));
    if (!fact.claim.must) taken_[fact.claim.place.operation] = true;
    Count(fact, false);
    if (fact.claim.must && fact.claim.floating) {
      floats_left_.Take(place_[number]);
    } else if (fact.claim.must) {
      events_left_.Take(place_[number]);
      events_left_.Take(ends_[number]);
    }
    if (fact.reads_only) return;
    ++revision_;
    if (fact.kind == FactKind::kTxn) {
      for (const Change& change : txn.changes) Apply(change);
    } else if (fact.kind == FactKind::kPut) {
      Slot slot = slots_[fact.first];
      if (!slot.live) slot = {.live = true, .create = revision_};
      if (!fact.ignore_value) slot.value = fact.value;
      slot.mod = revision_;
      ++slot.version;
      Set(fact.first, slot);
    } else {
      for (uint32_t key = fact.first; key < fact.last; ++key) {
        if (slots_[key].live) Set(key, {});
      }
    }
  }

  void Apply(const Change& change) {
    auto key = static_cast<uint32_t>(std::ranges::lower_bound(all_.keys, change.key) - all_.keys.begin());
    if (!change.now.has_value()) return Set(key, {});
    Set(key, {.live = true,
              .value = all_.value_numbers.at(change.now->value),
              .create = change.now->create_revision,
              .mod = change.now->mod_revision,
              .version = change.now->version});
  }

  void TakeBack() {
    const Frame frame = stack_.back();
    stack_.pop_back();
    const Fact& fact = all_.facts[frame.fact];
    while (undo_.size() > frame.undo_from) {
      slots_[undo_.back().key] = undo_.back().slot;
      undo_.pop_back();
    }
    print_ = frame.before;
    revision_ = frame.revision_before;
    if (!fact.claim.must) taken_[fact.claim.place.operation] = false;
    if (fact.claim.must && fact.claim.floating) {
      floats_left_.PutBack(place_[frame.fact]);
    } else if (fact.claim.must) {
      events_left_.PutBack(ends_[frame.fact]);
      events_left_.PutBack(place_[frame.fact]);
    }
    Count(fact, true);
  }

  // Keeps the counts of what is left.
  void Count(const Fact& fact, bool back) {
    if (fact.pinned && fact.reads_only) reads_left_[fact.revision] += back ? 1 : -1;
    if (!fact.claim.must) {
      optional_placed_ += back ? ~size_t{0} : size_t{1};
      return;
    }
    must_left_ += back ? size_t{1} : ~size_t{0};
    if (!fact.claim.floating) musts_placed_ += back ? ~size_t{0} : size_t{1};
  }

  Fingerprint Masked() const { return {print_.high & mask_.high, print_.low & mask_.low}; }

  const Facts& all_;
  const bool revisions_;
  const uint64_t salt_;
  const Fingerprint mask_;
  bool impossible_ = false;

  std::vector<uint32_t> optional_;            // in order of call
  std::vector<uint32_t> floating_;            // in order of end
  std::vector<Event> events_;                 // of the other facts that must be, in order of time
  TimeList events_left_;                      // without those of placed facts
  TimeList floats_left_;                      // likewise, over floating_
  std::vector<size_t> place_;                 // by fact that must be: in floating_, or of its call in events_
  std::vector<size_t> ends_;                  // by fact: in events_
  std::vector<Cut> cuts_;                     // in order of time
  std::map<int64_t, int64_t> reads_left_;     // kAll, by revision: facts that only read there, not placed yet

  // The state, and how it came about.
  std::vector<Slot> slots_;                   // by key
  int64_t revision_ = 1;
  std::vector<bool> taken_;                   // by operation without an answer: one of its facts is placed
  size_t must_left_ = 0;
  size_t optional_placed_ = 0;
  size_t musts_placed_ = 0;                   // without floating ones
  Fingerprint print_;                         // of what is placed, and of slots_
  std::vector<Frame> stack_;
  std::vector<Undo> undo_;

  absl::flat_hash_set<Fingerprint> tried_;    // looked up only
  size_t floor_ = 0;                          // frames below it are settled
  uint64_t steps_ = 0;
};

constexpr uint64_t kFirstTurn = 1'000;  // steps; each further turn has four times as many
constexpr uint64_t kSalts[] = {0x5EED'0001, 0x5EED'0002};

struct Attempt {
  SearchVerdict verdict = SearchVerdict::kUndetermined;
  std::vector<std::vector<uint32_t>> orders;  // by part
};

// All parts by turns. `steps` rises by what was spent.
Attempt SearchParts(const Facts& facts, uint64_t salt, uint32_t bits, uint64_t steps_max, uint64_t& steps) {
  std::vector<std::vector<uint32_t>> parts = Parts(facts);
  Attempt attempt{.orders = std::vector<std::vector<uint32_t>>(parts.size())};
  std::vector<bool> decided(parts.size());
  size_t left = parts.size();
  for (uint64_t turn = kFirstTurn; left > 0; turn *= 4) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (decided[i]) continue;
      if (steps >= steps_max) return attempt;
      PartSearch search(facts, parts[i], salt, bits);
      SearchVerdict verdict = search.Run(std::min(turn, steps_max - steps));
      steps += search.steps();
      if (verdict == SearchVerdict::kIllegal) {
        attempt.verdict = verdict;
        return attempt;
      }
      if (verdict == SearchVerdict::kUndetermined) continue;
      attempt.orders[i] = search.order();
      decided[i] = true;
      --left;
    }
  }
  attempt.verdict = SearchVerdict::kLegal;
  return attempt;
}

// One order out of those of the parts: of their next facts always the one called first. As the parts' orders and real
// time together have no cycle (locality), some next fact was called before everything left ends, and so was that one.
std::vector<Place> Merge(const Facts& facts, const std::vector<std::vector<uint32_t>>& orders) {
  std::vector<Place> merged;
  std::vector<size_t> next(orders.size());
  while (true) {
    size_t chosen = orders.size();
    uint64_t earliest = kNever;
    for (size_t i = 0; i < orders.size(); ++i) {
      if (next[i] == orders[i].size()) continue;
      const Claim& claim = facts.facts[orders[i][next[i]]].claim;
      uint64_t call = claim.floating ? 0 : claim.call;
      if (chosen != orders.size() && call >= earliest) continue;
      chosen = i;
      earliest = call;
    }
    if (chosen == orders.size()) return merged;
    merged.push_back(facts.facts[orders[chosen][next[chosen]++]].claim.place);
  }
}

}  // namespace

SearchResult Search(std::span<const Operation> history, const SearchOptions& options) {
  CHECK(options.fingerprint_bits >= 1 && options.fingerprint_bits <= 128);
  Facts facts = MakeFacts(history, options.evidence);
  SearchResult result;
  Attempt attempt = SearchParts(facts, kSalts[0], options.fingerprint_bits, options.steps_max, result.steps);
  if (attempt.verdict == SearchVerdict::kIllegal && options.confirm) {
    attempt = SearchParts(facts, kSalts[1], 128, options.steps_max, result.steps);
  }
  if (attempt.verdict == SearchVerdict::kIllegal && !facts.complete) attempt.verdict = SearchVerdict::kUndetermined;
  result.verdict = attempt.verdict;
  if (result.verdict != SearchVerdict::kLegal) return result;
  result.order = Merge(facts, attempt.orders);
  result.trouble = OrderTrouble(history, options.evidence, result.order);
  if (!result.trouble.empty()) result.verdict = SearchVerdict::kUndetermined;
  return result;
}

}  // namespace detcd::checker
