// The contract of the seam over the operating system; the file tests on either thread.
#include "tests/seam/contract.h"

#include "tests/realnet/real_world.h"

namespace detcd {
namespace {

std::unique_ptr<SeamWorld> MakeRealWorld() { return std::make_unique<realnet::RealWorld>(false); }
std::unique_ptr<SeamWorld> MakeRealLogWorld() { return std::make_unique<realnet::RealWorld>(true); }

INSTANTIATE_TEST_SUITE_P(Real, SeamContract, ::testing::Values(&MakeRealWorld, &MakeRealLogWorld));

}  // namespace
}  // namespace detcd
