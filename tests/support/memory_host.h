// One incarnation of a member's world in memory: the clock, events, streams and trace of a MemoryNetwork, and the files
// of a MemoryDisk, which outlives it. Nothing happens but in Run and Advance.
//
//   testing::MemoryDisk disk;
//   testing::MemoryHost host(disk);
//   Member member(host, options, listener);
//   host.AtEndOfTurn([&] { member.EndTurn(); });
//   member.Start();
//   host.Run();
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/io/host.h"
#include "tests/support/memory_files.h"
#include "tests/support/memory_network.h"

namespace detcd::testing {

class MemoryHost final : public Host {
 public:
  explicit MemoryHost(MemoryDisk& disk) : disk_files(disk) {}

  // Called after each event, until the host is stopped.
  void AtEndOfTurn(std::function<void()> call);
  // Ends the present turn and runs everything that can run without time passing.
  void Run();
  // Lets time pass in steps of at most 10 ms, each followed by Run.
  void Advance(Duration duration);
  // Runs until the next call on a file or folder ended; false: none is pending.
  bool StepFiles();

  bool stopped() const { return stop_reason.has_value(); }

  // --- the seam ----------------------------------------------------------------------------------------------------
  Events& events() override { return world; }
  Clock& clock() override { return world; }
  Network& network() override { return world; }
  FileSystem& files() override { return disk_files; }
  Offloader& offloader() override;  // aborts: nothing of this release off-loads
  Trace& trace() override { return world; }
  KeyedRandom Random(std::string_view component) override { return KeyedRandom(1, component); }
  void FillSecure(std::span<uint8_t> out) override;
  void Stop(bool ok, std::string reason) override;

  MemoryNetwork world;
  MemoryFiles disk_files;
  std::optional<std::string> stop_reason;  // of the first Stop
  bool stopped_well = false;

 private:
  KeyedRandom secure_{1, "secure"};
};

}  // namespace detcd::testing
