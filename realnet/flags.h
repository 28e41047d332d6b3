// The words of a command line and of the environment, as etcd reads them: its table of flags, and the exact forms that
// Go's flag package takes (reference/flags.md 1 and 2). CLI11 cannot: etcd's long flags may have one dash.
//
//   -x VALUE   --x VALUE   -x=VALUE   --x=VALUE   booleans -x, -x=true   ETCD_X_Y=VALUE
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"

namespace detcd::realnet {

enum class FlagKind : uint8_t { kText, kBool, kUnsigned, kUnsigned32, kSigned, kDuration, kUrls, kClusterState };

enum class FlagStanding : uint8_t {
  kBuilt,     // does what etcd's does
  kNoEffect,  // taken with a warning: what it tunes is not there, and nobody is harmed by its absence
  kNotBuilt,  // refused by name, unless the value asks for what is the default anyway
  kIgnored,   // etcd takes it and does nothing, too: bare or with `=anything`
};

struct FlagRow {
  std::string_view name;
  FlagKind kind;
  FlagStanding standing;
  std::string_view default_value;
  std::string_view purpose = {};  // of built ones, for the help
};

// Every flag that etcd 3.7 knows, so that a typing error and a flag that is yet to be built are told apart.
std::span<const FlagRow> FlagTable();
// Null when etcd has no such flag.
const FlagRow* FindFlag(std::string_view name);
// `ETCD_` and the name in upper case, dashes as underscores.
std::string VariableOf(std::string_view flag_name);

// What was given, by the name of the flag; the values have passed the check of their kind.
using FlagValues = std::map<std::string, std::string, std::less<>>;

struct CommandLine {
  FlagValues values;
  std::vector<std::string> extra;  // from the first word on that is no flag, as Go stops there
  bool help = false;
};

// `words` without the program's name. Takes words up to the first error, which goes to `error` in Go's words.
std::optional<CommandLine> ParseCommandLine(std::span<const std::string> words, std::string& error);

// Adds to `values` what the environment (`NAME=VALUE` each) sets. `warnings` gets one line for each variable that etcd
// has no flag for. False: `error` is set; a variable for which `values` has the flag already is one, as in etcd.
bool AddEnvironment(std::span<const std::string> environment, FlagValues& values, std::vector<std::string>& warnings,
                    std::string& error);

// Go's strconv.ParseBool and ParseUint with base 0.
std::optional<bool> ParseBool(std::string_view text);
std::optional<uint64_t> ParseUnsigned(std::string_view text);
// Go's time.ParseDuration: an optional sign, then numbers with a unit each; a bare 0 is the only number without one.
std::optional<Duration> ParseDuration(std::string_view text);

// The parts of `text` between commas.
std::vector<std::string> SplitCommas(std::string_view text);

}  // namespace detcd::realnet
