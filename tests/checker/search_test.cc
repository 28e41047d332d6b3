#include "checker/search.h"
