#include "scenarios/zoo/mutant_tree.h"

#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/str_format.h"
#include "core/base/digest.h"
#include "scenarios/commands.h"

namespace detcd::scenario {
namespace {

namespace fs = std::filesystem;

constexpr char kZooFolder[] = "scenarios/zoo/";

std::string Quoted(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string ReadWhole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Leaves the time of an unchanged file alone: builds go by it.
void WriteIfOther(const fs::path& path, const std::string& content, fs::perms permissions) {
  if (fs::exists(path) && ReadWhole(path) == content) return;
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  fs::permissions(path, permissions);
}

bool EndsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// The first line of a compiler's or a linker's complaint.
std::string FirstError(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("error:") != std::string::npos || line.find("undefined") != std::string::npos) return line;
  }
  return text.substr(0, text.find('\n'));
}

}  // namespace

Ended RunProgram(const std::vector<std::string>& words, const std::string& folder) {
  std::string command = "cd " + Quoted(folder) + " &&";
  for (const std::string& word : words) command += " " + Quoted(word);
  std::FILE* pipe = popen((command + " 2>&1 </dev/null").c_str(), "r");
  if (pipe == nullptr) throw UsageError{words.front() + ": " + std::strerror(errno)};
  Ended ended;
  char buffer[4096];
  for (size_t size = 0; (size = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) ended.text.append(buffer, size);
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

MutantTree::MutantTree(std::string root) : root_(std::move(root)), copy_(root_ + "/build/zoo/tree") {
  const Ended listed = RunProgram({"git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"}, root_);
  if (listed.code != 0 || !fs::exists(root_ + "/" + kZooFolder)) {
    throw UsageError{"zoo: " + root_ + " is no git working tree of detcd"};
  }
  std::set<std::string> files;
  for (size_t at = 0; at < listed.text.size();) {
    const size_t end = std::min(listed.text.find('\0', at), listed.text.size());
    std::string file = listed.text.substr(at, end - at);
    if (fs::is_regular_file(root_ + "/" + file)) files.insert(std::move(file));
    at = end + 1;
  }
  files_.assign(files.begin(), files.end());
  Digest digest;
  for (const std::string& file : files_) {
    if (EndsWith(file, ".md") || file.rfind(kZooFolder, 0) == 0) continue;
    digest.AddBytes(file);
    digest.AddBytes(Content(file));
  }
  key_ = absl::StrFormat("%016x", digest.value());
}

std::string MutantTree::Content(const std::string& file) const { return ReadWhole(root_ + "/" + file); }

std::vector<std::string> MutantTree::Patches() const {
  std::vector<std::string> patches;
  for (const bool instrument : {false, true}) {
    for (const std::string& file : files_) {
      if (file.rfind(kZooFolder, 0) != 0 || !EndsWith(file, ".patch")) continue;
      if ((file.find("/instrument/") != std::string::npos) == instrument) patches.push_back(file);
    }
  }
  return patches;
}

void MutantTree::Apply(const Mutant* mutant) {
  std::map<std::string, std::string> changed;
  if (mutant != nullptr) {
    // Outside of every repository git applies to the folder it is in; it allows no fuzz.
    const fs::path scratch = root_ + "/build/zoo/patched";
    fs::remove_all(scratch);
    for (const std::string& file : mutant->touched) {
      if (!std::binary_search(files_.begin(), files_.end(), file)) throw MutantTrouble{"there is no " + file + " to patch"};
      WriteIfOther(scratch / file, Content(file), fs::perms::owner_all);
    }
    const Ended applied = RunProgram({"env", "GIT_CEILING_DIRECTORIES=" + scratch.parent_path().string(), "git", "apply",
                                      root_ + "/" + mutant->file}, scratch.string());
    if (applied.code != 0) throw MutantTrouble{"does not apply: " + applied.text.substr(0, applied.text.find('\n'))};
    for (const std::string& file : mutant->touched) changed[file] = ReadWhole(scratch / file);
  }
  for (const std::string& file : files_) {
    const auto found = changed.find(file);
    const fs::perms permissions = fs::status(root_ + "/" + file).permissions();
    WriteIfOther(copy_ + "/" + file, found == changed.end() ? Content(file) : found->second, permissions);
  }
  std::vector<fs::path> gone;
  for (auto entry = fs::recursive_directory_iterator(copy_); entry != fs::recursive_directory_iterator(); ++entry) {
    const std::string file = fs::relative(entry->path(), copy_).string();
    if (file == "build") entry.disable_recursion_pending();
    if (entry->is_regular_file() && !std::binary_search(files_.begin(), files_.end(), file)) gone.push_back(entry->path());
  }
  for (const fs::path& path : gone) fs::remove(path);
}

void MutantTree::Build(const std::string& target) {
  Ended done;
  if (!fs::exists(copy_ + "/build/sim/build.ninja")) done = RunProgram({"cmake", "--preset", "sim"}, copy_);
  if (done.code == 0) done = RunProgram({"cmake", "--build", "--preset", "sim", "--target", target}, copy_);
  if (done.code != 0) throw MutantTrouble{"does not build: " + FirstError(done.text)};
}

}  // namespace detcd::scenario
