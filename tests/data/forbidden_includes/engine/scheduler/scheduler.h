#pragma once

#include "engine/base/ids.h"
#include "engine/tensor/tensor_view.h"
